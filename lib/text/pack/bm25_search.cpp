#include "text/pack/bm25_search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "core/parallel.h"
#include "text/pack/bm25_index.h"

namespace text {
namespace {

// Queries that share a block of the index while it is in the cache.
constexpr std::size_t kBatch = 128;
constexpr std::size_t kGroup = 8;  // of them as many as have their scores in the cache

// Postings are asked for so many terms ahead: half of their cost is the wait for the first ones.
constexpr std::size_t kAhead = 6;

struct SparseTerm {
  std::uint32_t term;
  float weight;
};

struct Query {
  std::vector<SparseTerm> sparse;
  std::vector<DenseTerm> dense;
  std::vector<Hit> best;  // the best so far, in any order
  float threshold = 0;    // what a score must reach to be among them
};

// Searches batches of queries in a part of the index. One a thread.
class Searcher {
 public:
  Searcher(const Bm25& bm25, const TermKinds& kinds, std::uint32_t top)
      : bm25_(bm25),
        kinds_(kinds),
        top_(top),
        queries_(kBatch),
        scores_(kGroup * IndexBlock::kUnits) {}

  void search(const std::vector<std::unique_ptr<IndexBlock>>& blocks,
              std::span<const std::uint32_t> units, std::uint32_t first_query, Hits& hits) {
    for (std::size_t i = 0; i < units.size(); ++i)
      prepare(queries_[i], units[i], hits.of(first_query + static_cast<std::uint32_t>(i)));
    for (const auto& block : blocks)
      for (std::size_t at = 0; at < units.size(); at += kGroup)
        score(*block, std::span(queries_).subspan(at, std::min(kGroup, units.size() - at)));
    for (std::size_t i = 0; i < units.size(); ++i) {
      std::sort(queries_[i].best.begin(), queries_[i].best.end());
      hits.set(first_query + static_cast<std::uint32_t>(i), queries_[i].best);
    }
  }

 private:
  void prepare(Query& query, std::uint32_t unit, std::span<const Hit> best) {
    query.sparse.clear();
    query.dense.clear();
    for (const auto& [term, count] : bm25_.lists().list(unit)) {
      const float weight = bm25_.idf(term) * static_cast<float>(count);
      if (const auto row = kinds_.row(term); row == TermKinds::kSparse)
        query.sparse.push_back({term, weight});
      else
        query.dense.push_back({row, weight});
    }
    query.best.assign(best.begin(), best.end());
    query.threshold = query.best.size() < top_ ? 0 : query.best.back().score;
  }

  void score(const IndexBlock& block, std::span<Query> queries) {
    const std::size_t tiles = block.tiles();
    for (std::size_t q = 0; q < queries.size(); ++q) {
      float* scores = &scores_[q * IndexBlock::kUnits];
      std::fill_n(scores, tiles * kTile, 0.0f);
      const auto& terms = queries[q].sparse;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        if (t + kAhead < terms.size()) block.prefetch(terms[t + kAhead].term);
        block.add(terms[t].term, terms[t].weight, scores);
      }
    }
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const float* rows = block.rows(tile);
      for (std::size_t q = 0; q < queries.size(); ++q)
        highest_[q][tile] =
            add_rows(rows, queries[q].dense, &scores_[q * IndexBlock::kUnits + tile * kTile]);
    }
    for (std::size_t q = 0; q < queries.size(); ++q)
      select(block, std::span(highest_[q], tiles), &scores_[q * IndexBlock::kUnits], queries[q]);
  }

  // As long as there is no better bound: the `top` best of all are not below those of the tiles'
  // best.
  void select(const IndexBlock& block, std::span<const float> highest, const float* scores,
              Query& query) {
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
        query.best.push_back({block.first() + static_cast<std::uint32_t>(tile * kTile + places[i]),
                              of_tile[places[i]]});
    }
    if (query.best.size() < top_) return;
    std::nth_element(query.best.begin(), query.best.begin() + (top_ - 1), query.best.end());
    query.best.resize(top_);
    query.threshold = query.best.back().score;
  }

  const Bm25& bm25_;
  const TermKinds& kinds_;
  std::uint32_t top_;
  std::vector<Query> queries_;
  core::HugeArray<float> scores_;  // (kGroup, IndexBlock::kUnits)
  float highest_[kGroup][IndexBlock::kTiles];
  std::vector<float> order_;
};

// The units up to which an index that begins at `first` fits into `memory`; at least one block.
std::uint32_t part_end(const TermLists& lists, const TermKinds& kinds, std::uint32_t first,
                       std::uint64_t memory) {
  std::uint64_t bytes = 0;
  std::uint32_t last = first;
  while (last < lists.size()) {
    const auto next = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(lists.size(), std::uint64_t{last} + IndexBlock::kUnits));
    bytes += IndexBlock::bytes(lists, kinds, last, next);
    if (last > first && bytes > memory) break;
    last = next;
  }
  return last;
}

}  // namespace

Hits search(const Bm25& bm25, std::span<const std::uint32_t> queries, const SearchOptions& options,
            const std::function<void(std::uint64_t)>& progress, std::uint32_t* parts) {
  const auto& lists = bm25.lists();
  const TermKinds kinds(lists);
  Hits hits(static_cast<std::uint32_t>(queries.size()), options.top);
  std::mutex mutex;
  std::uint64_t done = 0;
  std::uint32_t n_parts = 0;
  const std::uint32_t units = queries.empty() ? 0 : lists.size();  // of the index
  for (std::uint32_t first = 0; first < units; ++n_parts) {
    const std::uint32_t last = part_end(lists, kinds, first, options.memory);
    std::vector<std::unique_ptr<IndexBlock>> blocks((last - first + IndexBlock::kUnits - 1) /
                                                    IndexBlock::kUnits);
    core::parallel_for(options.jobs, blocks.size(), [&] {
      return [&](std::uint64_t i) {
        const auto begin = first + static_cast<std::uint32_t>(i) * IndexBlock::kUnits;
        blocks[i] = std::make_unique<IndexBlock>(bm25, kinds, begin,
                                                 std::min(last, begin + IndexBlock::kUnits));
      };
    });
    core::parallel_for(options.jobs, (queries.size() + kBatch - 1) / kBatch, [&] {
      auto searcher = std::make_shared<Searcher>(bm25, kinds, options.top);
      return [&, searcher](std::uint64_t i) {
        const auto batch =
            queries.subspan(i * kBatch, std::min(kBatch, queries.size() - i * kBatch));
        searcher->search(blocks, batch, static_cast<std::uint32_t>(i * kBatch), hits);
        const std::lock_guard lock(mutex);
        progress(done += batch.size());
      };
    });
    first = last;
  }
  if (parts != nullptr) *parts = n_parts;
  return hits;
}

}  // namespace text
