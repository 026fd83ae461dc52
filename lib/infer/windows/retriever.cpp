#include "infer/windows/retriever.h"

#include <algorithm>
#include <cmath>

namespace infer {

Retriever::Retriever(RetrievePlan plan)
    : plan_(std::move(plan)),
      queries_(*plan_.index),
      searcher_(plan_.index->searcher(static_cast<std::uint32_t>(plan_.mix))) {}

std::vector<Prefixes> Retriever::find(std::span<const RetrievalQuery> queries) {
  constexpr std::size_t kBatch = passages::BlockSearcher::kBatch;
  std::vector<std::vector<passages::TermCount>> terms;
  std::vector<passages::Bm25Query> asked;
  for (const auto& query : queries) terms.push_back(queries_.terms_of(std::span(query.tokens)));
  for (std::size_t i = 0; i < queries.size(); ++i) asked.push_back({terms[i], queries[i].without});
  passages::Hits hits(static_cast<std::uint32_t>(asked.size()),
                      static_cast<std::uint32_t>(plan_.mix));
  for (std::size_t at = 0; at < asked.size(); at += kBatch)
    searcher_.search(index().blocks(),
                     std::span(asked).subspan(at, std::min(kBatch, asked.size() - at)),
                     static_cast<std::uint32_t>(at), hits);
  std::vector<Prefixes> found(queries.size());
  for (std::uint32_t i = 0; i < hits.queries(); ++i) {
    double sum = 0;
    for (const auto& hit : hits.of(i)) {
      const auto tokens = index().passage(hit.unit, static_cast<std::uint64_t>(plan_.tokens));
      const double weight =
          std::exp((static_cast<double>(hit.score) - static_cast<double>(hits.of(i)[0].score)) /
                   plan_.temperature);
      sum += weight;
      found[i].push_back(
          {{tokens.begin(), tokens.end()}, hit.unit, static_cast<double>(hit.score), weight});
    }
    for (auto& prefix : found[i]) prefix.weight /= sum;
  }
  return found;
}

std::int64_t longest(const Prefixes& prefixes) {
  std::int64_t most = 0;
  for (const auto& prefix : prefixes) most = std::max(most, std::ssize(prefix.tokens));
  return most;
}

core::OrderedJson to_json(const Prefixes& prefixes, const passages::PassageIndex& index) {
  auto list = core::OrderedJson::array();
  for (const auto& prefix : prefixes) {
    const auto place = index.cuts().place(prefix.passage);
    list.push_back({{"passage", prefix.passage},
                    {"score", prefix.score},
                    {"weight", prefix.weight},
                    {"document", place.document},
                    {"offset", place.begin - index.cuts().begin_of(place.document)},
                    {"length", prefix.tokens.size()}});
  }
  return list;
}

}  // namespace infer
