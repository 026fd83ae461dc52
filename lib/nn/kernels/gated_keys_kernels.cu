#include "nn/kernels/gated_keys_kernels.h"

#include "nn/kernels/launch.h"
#include "nn/kernels/leaky_kernels.h"

namespace nn {
namespace {

constexpr int kThreads = 128;

// A thread computes the levels and the factors of one head of one sequence, step by step.
__global__ void weigh(GatedInputs<float> s, GatedOutputs<float> out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.rows * s.heads) return;
  float level = s.levels[i];
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const std::int64_t head = (i / s.heads * s.steps + t) * s.heads + i % s.heads;
    const float gate = s.gate[head], faded = level + s.decay[head];
    level = fmaxf(faded, gate);
    out.levels[head] = level;
    out.own[head] = expf(gate - level);
    out.kept[head] = expf(faded - level);
  }
}

// A thread computes one channel of one sequence, step by step, so that the reads of a warp are
// coalesced.
__global__ void add_up(GatedInputs<float> s, GatedOutputs<float> out) {
  const std::int64_t d = s.heads * s.width, b = blockIdx.y,
                     i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= d) return;
  float sum = s.before[b * d + i];
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const std::int64_t step = b * s.steps + t, head = step * s.heads + i / s.width;
    sum = out.kept[head] * sum + out.own[head] * s.x[b * s.x_row + t * s.x_step + i];
    out.keys[step * d + i] = sum;
  }
}

// Turns sums into keys in place, one warp per head of a step.
__global__ void normalise(GatedInputs<float> s, GatedOutputs<float> out) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  float* const key = out.keys + item * s.width;
  float square = 0;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) square += key[c] * key[c];
  const float norm = sqrtf(warp_sum(square) + static_cast<float>(kNormFloor));
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) key[c] *= 1.0f / norm;
  if (threadIdx.x % kWarp == 0) out.norms[item] = norm;
}

// Writes to dx the gradient of each step's sum from the keys and the sums, one warp per head of a
// step.
__global__ void through_norm(
    GatedInputs<float> s, GatedOutputs<float> made, GatedGradients<float> g) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  const std::int64_t at = item * s.width;
  const float factor = 1.0f / made.norms[item];
  float along = 0;
  if (g.d_keys != nullptr)
    for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp)
      along += made.keys[at + c] * g.d_keys[at + c];
  along = warp_sum(along);
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) {
    float d_sum = g.d_sums == nullptr ? 0.0f : g.d_sums[at + c];
    if (g.d_keys != nullptr) d_sum += factor * (g.d_keys[at + c] - along * made.keys[at + c]);
    g.dx[at + c] = d_sum;
  }
}

// A thread computes one channel of one sequence, from the last step to the first. It adds to dx of
// a step the gradient from the next step.
__global__ void back_in_time(
    GatedInputs<float> s, GatedOutputs<float> made, GatedGradients<float> g) {
  const std::int64_t d = s.heads * s.width, b = blockIdx.y,
                     i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= d) return;
  float carried = 0;
  for (std::int64_t t = s.steps - 1; t >= 0; --t) {
    const std::int64_t step = b * s.steps + t;
    const float d_sum = carried + g.dx[step * d + i];
    g.dx[step * d + i] = d_sum;
    carried = made.kept[step * s.heads + i / s.width] * d_sum;
  }
  g.d_before[b * d + i] = carried;
}

// Distributes the gradient of each step's sum, in dx, to x, gate and decay, one warp per head of a
// step.
__global__ void share_out(GatedInputs<float> s, GatedOutputs<float> made, GatedGradients<float> g) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  const std::int64_t d = s.heads * s.width, head = item % s.heads, step = item / s.heads,
                     b = step / s.steps, t = step % s.steps, at = item * s.width;
  const float own = made.own[item];
  // The previous sum, as a vector and its norm.
  const float* const before = t > 0 ? made.keys + at - d : s.before + b * d + head * s.width;
  const float length = t > 0 ? made.norms[item - s.heads] : 1.0f;
  const float* const x = s.x + b * s.x_row + t * s.x_step + head * s.width;
  float d_own = 0, d_kept = 0;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) {
    const float d_sum = g.dx[at + c];
    d_own += d_sum * x[c];
    d_kept += d_sum * before[c];
    g.dx[at + c] = own * d_sum;
  }
  d_own = warp_sum(d_own);
  d_kept = warp_sum(d_kept);
  if (threadIdx.x % kWarp > 0) return;
  g.d_gate[item] = own * d_own;
  g.d_decay[item] = made.kept[item] * length * d_kept;
}

dim3 blocks(std::int64_t threads, std::int64_t rows = 1) {
  return dim3(
      static_cast<unsigned>((threads + kThreads - 1) / kThreads), static_cast<unsigned>(rows));
}

dim3 channels(const GatedInputs<float>& s) { return blocks(s.heads * s.width, s.rows); }
dim3 warps(const GatedInputs<float>& s) { return blocks(s.rows * s.steps * s.heads * kWarp); }

}  // namespace

int gated_keys_forward_cuda(
    const GatedInputs<float>& in, const GatedOutputs<float>& out, void* stream) {
  if (const int error = launch(weigh, blocks(in.rows * in.heads), kThreads, stream, in, out))
    return error;
  if (const int error = launch(add_up, channels(in), kThreads, stream, in, out)) return error;
  return launch(normalise, warps(in), kThreads, stream, in, out);
}

int gated_keys_backward_cuda(const GatedInputs<float>& in, const GatedOutputs<float>& made,
    const GatedGradients<float>& g, void* stream) {
  if (const int error = launch(through_norm, warps(in), kThreads, stream, in, made, g))
    return error;
  if (const int error = launch(back_in_time, channels(in), kThreads, stream, in, made, g))
    return error;
  return launch(share_out, warps(in), kThreads, stream, in, made, g);
}

}  // namespace nn
