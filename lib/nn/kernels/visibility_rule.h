#pragma once
// Visibility of memory entries, for one pair and for two ranges of tokens. CPU loops and CUDA
// kernels share these functions, so that they cannot disagree.

#include <cstdint>

#include "nn/kernels/host_device.h"

namespace nn {

/// Position of one token; see nn::TokenPositions. run -1 is padding.
struct TokenPosition {
  std::int64_t run, segment, position;
};

/// Positions of N tokens; see nn::TokenPositions.
struct PositionIds {
  const std::int64_t *run, *segment, *position;
  std::int64_t size;

  TESSERA_BOTH TokenPosition at(std::int64_t i) const { return {run[i], segment[i], position[i]}; }
};

/// A sum of rules is a union: an entry that several rules show counts once.
///   local  entries of the query's run and segment at earlier positions
///   far    entries of the query's run at earlier positions (own segment included), at most
///          `reach` tokens back; called "long" everywhere but here
///   ext    entries of other runs
/// Padding sees nothing and is visible to no query.
struct VisibilityRule {
  bool local = false, far = false, ext = false;
  /// Hides the query's own segment. TRIME's ext draws this per micro-batch.
  bool drop_own_segment = false;
  /// Maximum distance in tokens; 0: no limit.
  std::int64_t reach = 0;

  TESSERA_BOTH bool any() const { return local || far || ext; }
};

/// Returns whether the query sees the entry. It has no branches, so that a loop over entries
/// vectorises.
TESSERA_BOTH inline bool sees(
    const VisibilityRule& rule, const TokenPosition& query, const TokenPosition& entry) {
  const bool real = (query.run >= 0) & (entry.run >= 0), same_run = entry.run == query.run;
  const bool own_segment = entry.segment == query.segment,
             earlier = entry.position < query.position,
             near = (rule.reach == 0) | (query.position - entry.position <= rule.reach);
  const bool within = same_run & earlier & ((rule.local & own_segment) | (rule.far & near)) &
                      (!rule.drop_own_segment | !own_segment);
  return real & (within | (rule.ext & !same_run));
}

/// Minima and maxima of the ids of a range of tokens, without padding.
struct PositionRange {
  std::int64_t run_min = INT64_MAX, run_max = -1;
  std::int64_t segment_min = INT64_MAX, segment_max = -1;
  std::int64_t position_min = INT64_MAX, position_max = -1;
  /// Whether the range contains padding.
  bool padded = false;

  TESSERA_BOTH bool empty() const { return run_max < 0; }
  TESSERA_BOTH void add(const TokenPosition& token) {
    if (token.run < 0) {
      padded = true;
      return;
    }
    run_min = token.run < run_min ? token.run : run_min;
    run_max = token.run > run_max ? token.run : run_max;
    segment_min = token.segment < segment_min ? token.segment : segment_min;
    segment_max = token.segment > segment_max ? token.segment : segment_max;
    position_min = token.position < position_min ? token.position : position_min;
    position_max = token.position > position_max ? token.position : position_max;
  }
};

/// Returns the range of tokens [begin, end).
TESSERA_BOTH inline PositionRange range_of(
    const PositionIds& ids, std::int64_t begin, std::int64_t end) {
  PositionRange range;
  for (std::int64_t i = begin; i < end; ++i) range.add(ids.at(i));
  return range;
}

enum class Seen { none, some, all };

/// Returns whether `queries` see `entries`. all and none hold for every pair; some promises
/// nothing.
TESSERA_BOTH inline Seen range_visibility(
    const VisibilityRule& rule, const PositionRange& queries, const PositionRange& entries) {
  if (queries.empty() || entries.empty()) return Seen::none;
  const bool whole = !queries.padded && !entries.padded;
  const bool runs_meet = queries.run_min <= entries.run_max && entries.run_min <= queries.run_max,
             one_run = runs_meet && queries.run_min == queries.run_max &&
                       entries.run_min == entries.run_max;
  if (rule.ext && !one_run) return whole && !runs_meet ? Seen::all : Seen::some;

  // From here on entries of other runs are hidden.
  if (!runs_meet || entries.position_min >= queries.position_max) return Seen::none;
  const bool segments_meet = queries.segment_min <= entries.segment_max &&
                             entries.segment_min <= queries.segment_max,
             one_segment = segments_meet && queries.segment_min == queries.segment_max &&
                           entries.segment_min == entries.segment_max;
  if (rule.drop_own_segment && one_segment) return Seen::none;
  const std::int64_t nearest = queries.position_min - entries.position_max,
                     farthest = queries.position_max - entries.position_min;
  const bool some_local = rule.local && segments_meet && !rule.drop_own_segment,
             some_far = rule.far && (rule.reach == 0 || nearest <= rule.reach);
  if (!some_local && !some_far) return Seen::none;

  const bool all_earlier = entries.position_max < queries.position_min,
             dropped = rule.drop_own_segment && segments_meet;
  if (!whole || !one_run || !all_earlier || dropped) return Seen::some;
  const bool all_local = rule.local && one_segment,
             all_far = rule.far && (rule.reach == 0 || farthest <= rule.reach);
  return all_local || all_far ? Seen::all : Seen::some;
}

}  // namespace nn
