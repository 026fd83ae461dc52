#include "nn/kernels/memory_kernels.h"

#include <algorithm>
#include <type_traits>

#include "nn/kernels/vector_math.h"

namespace nn {
namespace {

inline float exp_or_zero(float x) { return x < -87.0f ? 0.0f : vec::exp(x); }

}  // namespace

SeenScores::SeenScores(
    const PositionIds& queries, const PositionIds& entries, const VisibilityRule& rule)
    : queries_(queries), entries_(entries), rule_(rule) {
  for (std::int64_t begin = 0; begin < entries.size; begin += kSeenTile) {
    const std::int64_t end = std::min(begin + kSeenTile, entries.size);
    tiles_.push_back({begin, end, range_of(entries, begin, end)});
  }
}

void SeenScores::mask(std::int64_t query, const Tile& tile, bool* visible) const {
  const VisibilityRule rule = rule_;
  const TokenPosition asking = queries_.at(query);
  const PositionIds entries = entries_;
  for (std::int64_t j = tile.begin; j < tile.end; ++j)
    visible[j - tile.begin] = sees(rule, asking, entries.at(j));
}

// Calls whole(begin, end), part(begin, end, visible) or hidden(begin, end) for each tile. Adjacent
// tiles of one kind are one call.
template <class Whole, class Part, class Hidden>
void SeenScores::each_tile(
    std::int64_t query, const Whole& whole, const Part& part, const Hidden& hidden) const {
  bool visible[kSeenTile];
  const PositionRange asking = range_of(queries_, query, query + 1);
  for (std::size_t t = 0; t < tiles_.size();) {
    const Seen kind = range_visibility(rule_, asking, tiles_[t].range);
    const auto begin = tiles_[t].begin;
    if (kind == Seen::some) {
      mask(query, tiles_[t], visible);
      part(begin, tiles_[t].end, visible);
      ++t;
      continue;
    }
    std::size_t last = t;
    while (
        last + 1 < tiles_.size() && range_visibility(rule_, asking, tiles_[last + 1].range) == kind)
      ++last;
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

void SeenScores::raise(
    const float* scores, float scale, std::int64_t begin, std::int64_t end, float* maxima) const {
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

// Const scores are not changed.
template <class Score>
void SeenScores::exponentiate_row(std::int64_t query, Score* row, float scale, float max,
    const std::int32_t* labels, std::int32_t target, float* sum_all, float* sum_positive) const {
  constexpr bool kKeep = !std::is_const_v<Score>;
  double all = 0, positive = 0;
  each_tile(
      query,
      [&](std::int64_t from, std::int64_t to) {
        float sum = 0, hits = 0;
#pragma omp simd reduction(+ : sum, hits)
        for (auto j = from; j < to; ++j) {
          const float e = exp_or_zero(row[j] * scale - max);
          if constexpr (kKeep) row[j] = e;
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
          if constexpr (kKeep) row[from + j] = e;
          sum += e;
          hits += labels[from + j] == target ? e : 0.0f;
        }
        all += sum, positive += hits;
      },
      [&](std::int64_t from, std::int64_t to) {
        if constexpr (kKeep) std::fill(row + from, row + to, 0.0f);
      });
  *sum_all += static_cast<float>(all);
  *sum_positive += static_cast<float>(positive);
}

void SeenScores::exponentiate(float* scores, float scale, const float* maxima,
    const std::int32_t* labels, const std::int32_t* targets, std::int64_t begin, std::int64_t end,
    float* sum_all, float* sum_positive) const {
  for (auto r = begin; r < end; ++r)
    exponentiate_row(r, scores + r * entries_.size, scale, maxima[r], labels, targets[r],
        sum_all + r, sum_positive + r);
}

void SeenScores::sum(const float* scores, std::span<const float> scales, const float* maxima,
    const std::int32_t* labels, const std::int32_t* targets, std::int64_t begin, std::int64_t end,
    float* sum_all, float* sum_positive, std::int64_t stride) const {
  for (auto r = begin; r < end; ++r) {
    std::int64_t at = r;
    for (const float scale : scales) {
      exponentiate_row(r, scores + r * entries_.size, scale, maxima[r] * scale, labels, targets[r],
          sum_all + at, sum_positive + at);
      at += stride;
    }
  }
}

void SeenScores::differentiate(float* exp, const std::int32_t* labels, const std::int32_t* targets,
    const float* every, const float* matching, std::int64_t begin, std::int64_t end) const {
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
