#include "nn/memory_kernels.h"

#include <algorithm>
#include <limits>

#include "nn/vector_math.h"

namespace nn {
namespace {

constexpr std::int64_t kTile = 64;

inline float exp_or_zero(float x) { return x < -87.0f ? 0.0f : vec::exp(x); }

}  // namespace

SeenScores::SeenScores(const PlaceIds& queries, const PlaceIds& entries, const SightRule& rule)
    : queries_(queries), entries_(entries), rule_(rule) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t begin = 0; begin < entries.size; begin += kTile) {
    Tile tile{begin, std::min(begin + kTile, entries.size), kMost, -1, kMost, -1, kMost, -1, false};
    for (auto j = tile.begin; j < tile.end; ++j) {
      if (entries.run[j] < 0) {
        tile.padded = true;
        continue;
      }
      tile.run_min = std::min(tile.run_min, entries.run[j]);
      tile.run_max = std::max(tile.run_max, entries.run[j]);
      tile.segment_min = std::min(tile.segment_min, entries.segment[j]);
      tile.segment_max = std::max(tile.segment_max, entries.segment[j]);
      tile.position_min = std::min(tile.position_min, entries.position[j]);
      tile.position_max = std::max(tile.position_max, entries.position[j]);
    }
    tiles_.push_back(tile);
  }
}

SeenScores::Seen SeenScores::seen(std::int64_t query, const Tile& tile) const {
  const auto run = queries_.run[query], segment = queries_.segment[query],
             position = queries_.position[query];
  if (run < 0 || tile.run_max < 0) return Seen::none;
  if (run < tile.run_min || run > tile.run_max)
    return !rule_.ext ? Seen::none : tile.padded ? Seen::some : Seen::all;
  if (rule_.ext && tile.run_min != tile.run_max) return Seen::some;
  // Entries of the query's run; of others too, which are hidden now.
  if (tile.position_min >= position) return Seen::none;
  const bool no_own = segment < tile.segment_min || segment > tile.segment_max;
  const bool only_own = tile.segment_min == segment && tile.segment_max == segment;
  const bool local = rule_.local && !no_own,
             near = rule_.reach == 0 || position - tile.position_max <= rule_.reach;
  if (!local && !(rule_.far && near)) return Seen::none;
  if (rule_.drop_own_segment && only_own) return Seen::none;
  if (tile.padded || tile.run_min != tile.run_max || tile.position_max >= position ||
      (rule_.drop_own_segment && !no_own))
    return Seen::some;
  const bool all_near =
      rule_.far && (rule_.reach == 0 || position - tile.position_min <= rule_.reach);
  return (rule_.local && only_own) || all_near ? Seen::all : Seen::some;
}

// MemoryRule::sees without branches, so that it vectorises.
void SeenScores::mask(std::int64_t query, const Tile& tile, bool* visible) const {
  const auto run = queries_.run[query], segment = queries_.segment[query],
             position = queries_.position[query];
  const auto reach = rule_.reach > 0 ? rule_.reach : std::numeric_limits<std::int64_t>::max();
  const auto [local, far, ext, drop, unused] = rule_;
  const bool real = run >= 0, keep = !drop;
  const auto *const runs = entries_.run + tile.begin,
                    *const segments = entries_.segment + tile.begin,
                    *const positions = entries_.position + tile.begin;
  for (std::int64_t j = 0; j < tile.end - tile.begin; ++j) {
    const bool same = runs[j] == run, own = segments[j] == segment;
    const bool earlier = positions[j] < position, near = position - positions[j] <= reach;
    const bool inside = same & earlier & ((local & own) | (far & near)) & (keep | !own);
    visible[j] = real & (runs[j] >= 0) & (inside | (ext & !same));
  }
}

// whole(begin, end), part(begin, end, visible) or hidden(begin, end) for each tile; neighbours of a
// kind are one call.
template <class Whole, class Part, class Hidden>
void SeenScores::each_tile(std::int64_t query, const Whole& whole, const Part& part,
                           const Hidden& hidden) const {
  bool visible[kTile];
  for (std::size_t t = 0; t < tiles_.size();) {
    const Seen kind = seen(query, tiles_[t]);
    const auto begin = tiles_[t].begin;
    if (kind == Seen::some) {
      mask(query, tiles_[t], visible);
      part(begin, tiles_[t].end, visible);
      ++t;
      continue;
    }
    std::size_t last = t;
    while (last + 1 < tiles_.size() && seen(query, tiles_[last + 1]) == kind) ++last;
    kind == Seen::all ? whole(begin, tiles_[last].end) : hidden(begin, tiles_[last].end);
    t = last + 1;
  }
}

void SeenScores::visible(std::int64_t query, bool* row) const {
  each_tile(
      query, [&](std::int64_t from, std::int64_t to) { std::fill(row + from, row + to, true); },
      [&](std::int64_t from, std::int64_t to, const bool* tile) {
        std::copy(tile, tile + (to - from), row + from);
      },
      [&](std::int64_t from, std::int64_t to) { std::fill(row + from, row + to, false); });
}

void SeenScores::raise(const float* scores, float scale, std::int64_t begin, std::int64_t end,
                       float* maxima) const {
  for (auto r = begin; r < end; ++r) {
    const float* const row = scores + r * entries_.size;
    float most = maxima[r];
    each_tile(
        r,
        [&](std::int64_t from, std::int64_t to) {
          float max = most;
#pragma omp simd reduction(max : max)
          for (auto j = from; j < to; ++j) max = row[j] * scale > max ? row[j] * scale : max;
          most = max;
        },
        [&](std::int64_t from, std::int64_t to, const bool* visible) {
          float max = most;
#pragma omp simd reduction(max : max)
          for (std::int64_t j = 0; j < to - from; ++j) {
            const float score = visible[j] ? row[from + j] * scale : max;
            max = score > max ? score : max;
          }
          most = max;
        },
        [](std::int64_t, std::int64_t) {});
    maxima[r] = most;
  }
}

void SeenScores::exponentiate(float* scores, float scale, const float* maxima,
                              const std::int32_t* labels, const std::int32_t* targets,
                              std::int64_t begin, std::int64_t end, float* sum_all,
                              float* sum_positive) const {
  for (auto r = begin; r < end; ++r) {
    float* const row = scores + r * entries_.size;
    const float max = maxima[r];
    const std::int32_t target = targets[r];
    double all = 0, positive = 0;
    each_tile(
        r,
        [&](std::int64_t from, std::int64_t to) {
          float sum = 0, hits = 0;
#pragma omp simd reduction(+ : sum, hits)
          for (auto j = from; j < to; ++j) {
            const float e = exp_or_zero(row[j] * scale - max);
            row[j] = e;
            sum += e;
            hits += labels[j] == target ? e : 0.0f;
          }
          all += sum, positive += hits;
        },
        [&](std::int64_t from, std::int64_t to, const bool* visible) {
          float sum = 0, hits = 0;
#pragma omp simd reduction(+ : sum, hits)
          for (std::int64_t j = 0; j < to - from; ++j) {
            const float e = visible[j] ? exp_or_zero(row[from + j] * scale - max) : 0.0f;
            row[from + j] = e;
            sum += e;
            hits += labels[from + j] == target ? e : 0.0f;
          }
          all += sum, positive += hits;
        },
        [&](std::int64_t from, std::int64_t to) { std::fill(row + from, row + to, 0.0f); });
    sum_all[r] += static_cast<float>(all);
    sum_positive[r] += static_cast<float>(positive);
  }
}

void SeenScores::differentiate(float* exp, const std::int32_t* labels, const std::int32_t* targets,
                               const float* every, const float* matching, std::int64_t begin,
                               std::int64_t end) const {
  for (auto r = begin; r < end; ++r) {
    float* const row = exp + r * entries_.size;
    const float plain = every[r], hit = every[r] + matching[r];
    const std::int32_t target = targets[r];
    const auto scale = [&](std::int64_t from, std::int64_t to) {
#pragma omp simd
      for (auto j = from; j < to; ++j) row[j] *= labels[j] == target ? hit : plain;
    };
    each_tile(
        r, scale, [&](std::int64_t from, std::int64_t to, const bool*) { scale(from, to); },
        [](std::int64_t, std::int64_t) {});
  }
}

}  // namespace nn
