#include "passages/bm25_search.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/parallel.h"
#include "passages/block_searcher.h"
#include "passages/bm25_index.h"

namespace passages {
namespace {

constexpr std::size_t kBatch = BlockSearcher::kBatch;

// Returns the end of the units whose index, from `first` on, fits into `memory`; at least one
// block.
std::uint32_t part_end(const TermLists& lists, const TermKinds& kinds, std::uint32_t first,
                       std::uint64_t memory) {
  std::uint64_t bytes = 0;
  std::uint32_t last = first;
  while (last < lists.size()) {
    const auto next = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(lists.size(), std::uint64_t{last} + BlockView::kUnits));
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
    std::vector<std::unique_ptr<IndexBlock>> blocks((last - first + BlockView::kUnits - 1) /
                                                    BlockView::kUnits);
    core::parallel_for(options.jobs, blocks.size(), [&] {
      return [&](std::uint64_t i) {
        const auto begin = first + static_cast<std::uint32_t>(i) * BlockView::kUnits;
        blocks[i] = std::make_unique<IndexBlock>(bm25, kinds, begin,
                                                 std::min(last, begin + BlockView::kUnits));
      };
    });
    std::vector<BlockView> views;
    for (const auto& block : blocks) views.push_back(block->view());
    core::parallel_for(options.jobs, (queries.size() + kBatch - 1) / kBatch, [&] {
      auto searcher =
          std::make_shared<BlockSearcher>(bm25.idf(), kinds.row_of_terms(), options.top);
      return [&, searcher](std::uint64_t i) {
        std::vector<Bm25Query> batch;
        for (const auto unit :
             queries.subspan(i * kBatch, std::min(kBatch, queries.size() - i * kBatch)))
          batch.push_back({lists.list(unit), options.without.empty()
                                                 ? std::span<const UnitRange>()
                                                 : options.without.subspan(unit, 1)});
        searcher->search(views, batch, static_cast<std::uint32_t>(i * kBatch), hits);
        const std::lock_guard lock(mutex);
        progress(done += batch.size());
      };
    });
    first = last;
  }
  if (parts != nullptr) *parts = n_parts;
  return hits;
}

}  // namespace passages
