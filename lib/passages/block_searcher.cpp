#include "passages/block_searcher.h"

#include <algorithm>
#include <functional>

namespace passages {
namespace {

// Prefetch postings this many terms ahead; half of their cost is the latency of the first ones.
constexpr std::size_t kAhead = 6;

// A score that no sum can raise above any other.
constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

BlockSearcher::BlockSearcher(std::span<const float> idf, std::span<const std::uint32_t> row,
                             std::uint32_t top)
    : idf_(idf), row_(row), top_(top), queries_(kBatch), scores_(kGroup * BlockView::kUnits) {}

void BlockSearcher::search(std::span<const BlockView> blocks, std::span<const Bm25Query> queries,
                           std::uint32_t first_query, Hits& hits) {
  for (std::size_t i = 0; i < queries.size(); ++i)
    prepare(queries_[i], queries[i], hits.of(first_query + static_cast<std::uint32_t>(i)));
  for (const auto& block : blocks)
    for (std::size_t at = 0; at < queries.size(); at += kGroup)
      score(block, std::span(queries_).subspan(at, std::min(kGroup, queries.size() - at)));
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::sort(queries_[i].best.begin(), queries_[i].best.end());
    hits.set(first_query + static_cast<std::uint32_t>(i), queries_[i].best);
  }
}

void BlockSearcher::prepare(Query& query, const Bm25Query& asked, std::span<const Hit> best) const {
  query.sparse.clear();
  query.dense.clear();
  query.without = asked.without;
  for (const auto& [term, count] : asked.terms) {
    const float weight = idf_[term] * static_cast<float>(count);
    if (const auto row = row_[term]; row == TermKinds::kSparse)
      query.sparse.push_back({term, weight});
    else
      query.dense.push_back({row, weight});
  }
  query.best.assign(best.begin(), best.end());
  query.threshold = query.best.size() < top_ ? 0 : query.best.back().score;
}

void BlockSearcher::score(const BlockView& block, std::span<Query> queries) {
  const std::size_t tiles = block.tiles;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    float* scores = &scores_[q * BlockView::kUnits];
    std::fill_n(scores, tiles * kTile, 0.0f);
    for (const auto& [begin, end] : queries[q].without) {
      const auto last = std::min<std::size_t>(end, block.first + tiles * kTile);
      for (std::size_t unit = std::max(begin, block.first); unit < last; ++unit)
        scores[unit - block.first] = kNever;
    }
    const auto& terms = queries[q].sparse;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (t + kAhead < terms.size()) block.prefetch(terms[t + kAhead].term);
      block.add(terms[t].term, terms[t].weight, scores);
    }
  }
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const float* rows = block.tile(tile);
    for (std::size_t q = 0; q < queries.size(); ++q)
      highest_[q][tile] =
          add_rows(rows, queries[q].dense, &scores_[q * BlockView::kUnits + tile * kTile]);
  }
  for (std::size_t q = 0; q < queries.size(); ++q)
    select(block, std::span(highest_[q], tiles), &scores_[q * BlockView::kUnits], queries[q]);
}

// Without a better bound, the `top` best scores of all are at least the `top` best of the tiles'
// maxima.
void BlockSearcher::select(const BlockView& block, std::span<const float> highest,
                           const float* scores, Query& query) {
  float least = std::max(query.threshold, std::numeric_limits<float>::min());
  if (query.best.size() < top_ && highest.size() >= top_) {
    order_.assign(highest.begin(), highest.end());
    std::ranges::nth_element(order_, order_.begin() + (top_ - 1), std::greater<>());
    least = std::max(least, order_[top_ - 1]);
  }
  std::uint8_t places[kTile];
  for (std::size_t tile = 0; tile < highest.size(); ++tile) {
    if (highest[tile] < least) continue;
    const float* of_tile = scores + tile * kTile;
    const std::size_t n = places_from(of_tile, least, places);
    for (std::size_t i = 0; i < n; ++i)
      query.best.push_back(
          {block.first + static_cast<std::uint32_t>(tile * kTile + places[i]), of_tile[places[i]]});
  }
  if (query.best.size() < top_) return;
  std::nth_element(query.best.begin(), query.best.begin() + (top_ - 1), query.best.end());
  query.best.resize(top_);
  query.threshold = query.best.back().score;
}

}  // namespace passages
