#include "nn/visibility.h"

#include <algorithm>
#include <limits>

namespace nn {
namespace {

PlaceIds ids_of(const Place& place) {
  return {place.run.const_data_ptr<std::int64_t>(), place.segment.const_data_ptr<std::int64_t>(),
          place.position.const_data_ptr<std::int64_t>(), place.size()};
}

// Smallest and largest run, segment and position of a block of tokens, padding left out.
struct Summary {
  std::int64_t run_min = std::numeric_limits<std::int64_t>::max(), run_max = -1;
  std::int64_t segment_min = std::numeric_limits<std::int64_t>::max(), segment_max = -1;
  std::int64_t position_min = std::numeric_limits<std::int64_t>::max(), position_max = -1;

  Summary(const PlaceIds& ids, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (ids.run[i] < 0) continue;
      run_min = std::min(run_min, ids.run[i]), run_max = std::max(run_max, ids.run[i]);
      segment_min = std::min(segment_min, ids.segment[i]),
      segment_max = std::max(segment_max, ids.segment[i]);
      position_min = std::min(position_min, ids.position[i]),
      position_max = std::max(position_max, ids.position[i]);
    }
  }
  bool empty() const { return run_max < 0; }
};

// False only if no pair of the two blocks can see each other.
bool may_see(const Summary& q, const Summary& e, const MemoryRule& rule) {
  if (q.empty() || e.empty()) return false;
  const bool one_run = q.run_min == q.run_max && e.run_min == e.run_max && q.run_min == e.run_min;
  if (rule.ext && !one_run) return true;
  const bool runs_meet = q.run_min <= e.run_max && e.run_min <= q.run_max;
  if (!runs_meet || e.position_min >= q.position_max) return false;
  if (rule.far && (rule.reach == 0 || e.position_max >= q.position_min - rule.reach)) {
    const bool one_segment = q.segment_min == q.segment_max && e.segment_min == e.segment_max &&
                             q.segment_min == e.segment_min;
    if (!(rule.drop_own_segment && one_run && one_segment)) return true;
  }
  return rule.local && !rule.drop_own_segment && q.segment_min <= e.segment_max &&
         e.segment_min <= q.segment_max;
}

}  // namespace

Place contiguous(const Place& place) {
  return {place.run.contiguous(), place.segment.contiguous(), place.position.contiguous()};
}

SeenScores seen_scores(const Place& queries, const Place& entries, const MemoryRule& rule) {
  return {ids_of(queries),
          ids_of(entries),
          {rule.local, rule.far, rule.ext, rule.drop_own_segment, rule.reach}};
}

std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const Place& queries,
                                                                 const Place& entries,
                                                                 const MemoryRule& rule,
                                                                 std::int64_t granularity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  if (!rule.any()) return spans;
  const Place q = contiguous(queries), e = contiguous(entries);
  const Summary query(ids_of(q), 0, q.size());
  const PlaceIds ids = ids_of(e);
  for (std::int64_t begin = 0; begin < ids.size; begin += granularity) {
    const std::int64_t end = std::min(begin + granularity, ids.size);
    if (!may_see(query, Summary(ids, begin, end), rule)) continue;
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
