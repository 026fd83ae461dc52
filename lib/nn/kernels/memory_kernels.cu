#include "nn/kernels/memory_kernels.h"

#include "nn/kernels/launch.h"

namespace nn {
namespace {

constexpr int kThreads = 256, kTileThreads = 64;

__global__ void tile_ranges(PositionIds entries, PositionRange* tiles) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTileThreads + threadIdx.x,
                     begin = i * kSeenTile, end = begin + kSeenTile;
  if (begin < entries.size)
    tiles[i] = range_of(entries, begin, end < entries.size ? end : entries.size);
}

// A query. It decides visibility of a whole tile at once if possible; the decision is equal for all
// threads of a warp.
struct Asking {
  PositionRange range;
  TokenPosition place;
  __device__ Asking(const SeenRows& s, std::int64_t r)
      : range(range_of(s.queries, r, r + 1)), place(s.queries.at(r)) {}
  __device__ bool sees(const SeenRows& s, std::int64_t j) const {
    const Seen kind = range_visibility(s.rule, range, s.tiles[j / kSeenTile]);
    return kind == Seen::all || (kind == Seen::some && nn::sees(s.rule, place, s.entries.at(j)));
  }
};

// In this kernel and those below a block computes a row.
__global__ void seen_raise(SeenRows s, float* maxima) {
  __shared__ float parts[kThreads / kWarp];
  const std::int64_t r = blockIdx.x;
  const Asking asking(s, r);
  const float* const row = s.scores + r * s.entries.size;
  float most = maxima[r];
  for (std::int64_t j = threadIdx.x; j < s.entries.size; j += kThreads)
    if (asking.sees(s, j)) most = fmaxf(most, row[j] * s.scale);
  most = block_max(most, parts);
  if (threadIdx.x == 0) maxima[r] = most;
}

__global__ void seen_exponentiate(
    SeenRows s, const float* maxima, float* sum_all, float* sum_positive) {
  __shared__ float parts[kThreads / kWarp];
  const std::int64_t r = blockIdx.x, target = s.targets[r];
  const Asking asking(s, r);
  float* const row = s.scores + r * s.entries.size;
  const float most = maxima[r];
  float all = 0, positive = 0;
  for (std::int64_t j = threadIdx.x; j < s.entries.size; j += kThreads) {
    const float x = row[j] * s.scale - most;
    const float e = x >= -87.0f && asking.sees(s, j) ? expf(x) : 0.0f;
    row[j] = e;
    all += e;
    if (s.labels[j] == target) positive += e;
  }
  all = block_sum(all, parts);
  positive = block_sum(positive, parts);
  if (threadIdx.x > 0) return;
  sum_all[r] += all;
  sum_positive[r] += positive;
}

__global__ void seen_differentiate(SeenRows s, const float* every, const float* matching) {
  const std::int64_t r = blockIdx.x, target = s.targets[r];
  float* const row = s.scores + r * s.entries.size;
  const float plain = every[r], hit = every[r] + matching[r];
  for (std::int64_t j = threadIdx.x; j < s.entries.size; j += kThreads)
    row[j] *= s.labels[j] == target ? hit : plain;
}

dim3 rows_of(const SeenRows& s) {
  return dim3(s.entries.size > 0 ? static_cast<unsigned>(s.queries.size) : 0);
}

}  // namespace

int seen_tiles_cuda(const PositionIds& entries, PositionRange* tiles, void* stream) {
  const std::int64_t blocks = (seen_tiles(entries.size) + kTileThreads - 1) / kTileThreads;
  return launch(
      tile_ranges, dim3(static_cast<unsigned>(blocks)), kTileThreads, stream, entries, tiles);
}

int seen_raise_cuda(const SeenRows& s, float* maxima, void* stream) {
  return launch(seen_raise, rows_of(s), kThreads, stream, s, maxima);
}

int seen_exponentiate_cuda(
    const SeenRows& s, const float* maxima, float* sum_all, float* sum_positive, void* stream) {
  return launch(seen_exponentiate, rows_of(s), kThreads, stream, s, maxima, sum_all, sum_positive);
}

int seen_differentiate_cuda(
    const SeenRows& s, const float* every, const float* matching, void* stream) {
  return launch(seen_differentiate, rows_of(s), kThreads, stream, s, every, matching);
}

}  // namespace nn
