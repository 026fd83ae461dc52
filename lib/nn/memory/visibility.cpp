#include "nn/memory/visibility.h"

#include <algorithm>

#include "core/error.h"
#include "nn/base/cuda.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

static_assert(sizeof(PositionRange) == 7 * sizeof(std::int64_t));

// The pointers are in the memory of the host or of the device.
PositionIds ids_of(const TokenPositions& place) {
  return {place.run.const_data_ptr<std::int64_t>(), place.segment.const_data_ptr<std::int64_t>(),
          place.position.const_data_ptr<std::int64_t>(), place.size()};
}

}  // namespace

TokenPositions contiguous(const TokenPositions& place) {
  return {place.run.contiguous(), place.segment.contiguous(), place.position.contiguous()};
}

PositionPair::PositionPair(const TokenPositions& asking, const TokenPositions& asked,
                           torch::Device device) {
  const auto split = asking.size();
  const auto joined = TokenPositions::concatenate({asking, asked});
  const auto all = upload(torch::stack({joined.run, joined.segment, joined.position}), device);
  const TokenPositions there = {all[0], all[1], all[2]};
  queries = there.slice(0, split);
  entries = there.slice(split, split + asked.size());
  tiles = torch::empty({seen_tiles(asked.size()), 7}, all.options());
  const auto like = torch::empty({0}, all.options().dtype(torch::kFloat32));
  check_launch(
      cuda_kernels(like)->seen_tiles(ids_of(entries), static_cast<PositionRange*>(tiles.data_ptr()),
                                     cuda_stream(like)),
      "seen_tiles");
}

SeenRows PositionPair::rows(std::int64_t begin, std::int64_t end,
                            const VisibilityRule& rule) const {
  SeenRows rows{};
  rows.queries = ids_of(queries);
  rows.entries = ids_of(entries.slice(begin, end));
  rows.tiles = static_cast<const PositionRange*>(tiles.const_data_ptr()) + begin / kSeenTile;
  rows.rule = rule;
  return rows;
}

SeenScores seen_scores(const TokenPositions& queries, const TokenPositions& entries,
                       const MemoryRule& rule) {
  return {ids_of(queries), ids_of(entries), rule};
}

std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const TokenPositions& queries,
                                                                 const TokenPositions& entries,
                                                                 const MemoryRule& rule,
                                                                 std::int64_t granularity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  if (!rule.any()) return spans;
  const TokenPositions q = contiguous(queries), e = contiguous(entries);
  const PositionRange asking = range_of(ids_of(q), 0, q.size());
  const PositionIds ids = ids_of(e);
  for (std::int64_t begin = 0; begin < ids.size; begin += granularity) {
    const std::int64_t end = std::min(begin + granularity, ids.size);
    if (range_visibility(rule, asking, range_of(ids, begin, end)) == Seen::none) continue;
    if (!spans.empty() && spans.back().second == begin) {
      spans.back().second = end;
    } else {
      spans.emplace_back(begin, end);
    }
  }
  return spans;
}

torch::Tensor visibility(const TokenPositions& queries, const TokenPositions& entries,
                         const MemoryRule& rule) {
  const TokenPositions q = contiguous(queries), e = contiguous(entries);
  torch::Tensor visible = torch::empty({q.size(), e.size()}, torch::kBool);
  bool* const out = visible.data_ptr<bool>();
  const SeenScores seen = seen_scores(q, e, rule);
  at::parallel_for(0, q.size(), 1 + (1 << 16) / (1 + e.size()),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto i = begin; i < end; ++i) seen.visible(i, out + i * e.size());
                   });
  return visible;
}

}  // namespace nn
