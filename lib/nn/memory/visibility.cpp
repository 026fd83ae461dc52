#include "nn/memory/visibility.h"

#include <algorithm>

#include "core/error.h"
#include "nn/base/cuda.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

static_assert(sizeof(PlaceRange) == 7 * sizeof(std::int64_t));

// The pointers are in the memory of the host or of the device.
PlaceIds ids_of(const Place& place) {
  return {place.run.const_data_ptr<std::int64_t>(), place.segment.const_data_ptr<std::int64_t>(),
          place.position.const_data_ptr<std::int64_t>(), place.size()};
}

}  // namespace

Place contiguous(const Place& place) {
  return {place.run.contiguous(), place.segment.contiguous(), place.position.contiguous()};
}

Sighting::Sighting(const Place& asking, const Place& asked, torch::Device device) {
  const auto split = asking.size();
  const auto joined = Place::concatenate({asking, asked});
  const auto all = upload(torch::stack({joined.run, joined.segment, joined.position}), device);
  const Place there = {all[0], all[1], all[2]};
  queries = there.slice(0, split);
  entries = there.slice(split, split + asked.size());
  tiles = torch::empty({seen_tiles(asked.size()), 7}, all.options());
  const auto like = torch::empty({0}, all.options().dtype(torch::kFloat32));
  check_launch(cuda_kernels(like)->seen_tiles(
                   ids_of(entries), static_cast<PlaceRange*>(tiles.data_ptr()), cuda_stream(like)),
               "seen_tiles");
}

SeenRows Sighting::rows(std::int64_t begin, std::int64_t end, const SightRule& rule) const {
  SeenRows rows{};
  rows.queries = ids_of(queries);
  rows.entries = ids_of(entries.slice(begin, end));
  rows.tiles = static_cast<const PlaceRange*>(tiles.const_data_ptr()) + begin / kSeenTile;
  rows.rule = rule;
  return rows;
}

SeenScores seen_scores(const Place& queries, const Place& entries, const MemoryRule& rule) {
  return {ids_of(queries), ids_of(entries), rule};
}

std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const Place& queries,
                                                                 const Place& entries,
                                                                 const MemoryRule& rule,
                                                                 std::int64_t granularity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  if (!rule.any()) return spans;
  const Place q = contiguous(queries), e = contiguous(entries);
  const PlaceRange asking = range_of(ids_of(q), 0, q.size());
  const PlaceIds ids = ids_of(e);
  for (std::int64_t begin = 0; begin < ids.size; begin += granularity) {
    const std::int64_t end = std::min(begin + granularity, ids.size);
    if (sight(rule, asking, range_of(ids, begin, end)) == Seen::none) continue;
    if (!spans.empty() && spans.back().second == begin) {
      spans.back().second = end;
    } else {
      spans.emplace_back(begin, end);
    }
  }
  return spans;
}

torch::Tensor visibility(const Place& queries, const Place& entries, const MemoryRule& rule) {
  const Place q = contiguous(queries), e = contiguous(entries);
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
