#include "nn/kernels/leaky_kernels.h"

#include "nn/kernels/launch.h"

namespace nn {
namespace {

constexpr int kThreads = 128;

// A thread computes one channel of one sequence, step by step, so that the reads of a warp are
// coalesced.
__global__ void add_up(LeakyInputs<float> s, float* sums) {
  const std::int64_t d = s.heads * s.width, b = blockIdx.y,
                     i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= d) return;
  const float keep = s.decay[i / s.width];
  float sum = s.before == nullptr ? 0.0f : s.before[b * d + i];
  for (std::int64_t t = 0; t < s.steps; ++t) {
    sum = keep * sum + s.x[b * s.x_row + t * s.x_step + i];
    sums[(b * s.steps + t) * d + i] = sum;
  }
}

// Turns sums into keys in place, one warp per head of a step.
__global__ void normalise(LeakyInputs<float> s, float* keys, float* norms) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  float* const key = keys + item * s.width;
  float square = 0;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) square += key[c] * key[c];
  const float norm = sqrtf(warp_sum(square) + static_cast<float>(kNormFloor));
  const float factor = s.scale[item % s.heads] / norm;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) key[c] *= factor;
  if (threadIdx.x % kWarp == 0) norms[item] = norm;
}

// One warp per head of a step. Writes the gradient of the step's sum from the keys and the sums to
// dx, and the gradient of the scale to work.
__global__ void through_norm(
    LeakyInputs<float> s, const float* keys, const float* norms, LeakyGradients<float> g) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  const std::int64_t at = item * s.width;
  const float inverse = 1.0f / s.scale[item % s.heads], factor = 1.0f / (inverse * norms[item]);
  float along = 0;
  if (g.d_keys != nullptr)
    for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp)
      along += keys[at + c] * g.d_keys[at + c];
  along = warp_sum(along);
  const float back = along * inverse * inverse;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) {
    float d_sum = g.d_sums == nullptr ? 0.0f : g.d_sums[at + c];
    if (g.d_keys != nullptr) d_sum += factor * (g.d_keys[at + c] - back * keys[at + c]);
    g.dx[at + c] = d_sum;
  }
  if (threadIdx.x % kWarp == 0) g.work[item] = along * inverse;
}

// One block per head of a sequence, from the last step to the first. It adds to dx of a step the
// gradient from the next step.
__global__ void back_in_time(
    LeakyInputs<float> s, const float* keys, const float* norms, LeakyGradients<float> g) {
  __shared__ float parts[kThreads / kWarp];
  const std::int64_t d = s.heads * s.width, head = blockIdx.x, b = blockIdx.y;
  const float keep = s.decay[head], inverse = 1.0f / s.scale[head];
  float d_decay = 0, d_scale = 0;
  for (std::int64_t c = threadIdx.x; c < s.width; c += blockDim.x) {
    const std::int64_t i = head * s.width + c;
    float carried = 0;
    for (std::int64_t t = s.steps - 1; t >= 0; --t) {
      const std::int64_t step = b * s.steps + t, at = step * d + i;
      const float d_sum = carried + g.dx[at];
      float sum = s.before == nullptr ? 0.0f : s.before[b * d + i];  // of the previous step
      if (t > 0) sum = keys[at - d] * norms[(step - 1) * s.heads + head] * inverse;
      d_decay += d_sum * sum;
      g.dx[at] = d_sum;
      carried = keep * d_sum;
    }
    if (g.d_before != nullptr) g.d_before[b * d + i] = carried;
  }
  for (std::int64_t t = threadIdx.x; t < s.steps; t += blockDim.x)
    d_scale += g.work[(b * s.steps + t) * s.heads + head];
  d_decay = block_sum(d_decay, parts);
  d_scale = block_sum(d_scale, parts);
  if (threadIdx.x > 0) return;
  g.d_decay[b * s.heads + head] = d_decay;
  g.d_scale[b * s.heads + head] = d_scale;
}

unsigned blocks(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

unsigned warps(const LeakyInputs<float>& s) { return blocks(s.rows * s.steps * s.heads * kWarp); }

}  // namespace

int leaky_keys_forward_cuda(const LeakyInputs<float>& in, float* keys, float* norms, void* stream) {
  const dim3 channels(blocks(in.heads * in.width), static_cast<unsigned>(in.rows));
  if (const int error = launch(add_up, channels, kThreads, stream, in, keys)) return error;
  return launch(normalise, dim3(warps(in)), kThreads, stream, in, keys, norms);
}

int leaky_keys_backward_cuda(const LeakyInputs<float>& in, const float* keys, const float* norms,
    const LeakyGradients<float>& g, void* stream) {
  const dim3 heads(static_cast<unsigned>(in.heads), static_cast<unsigned>(in.rows));
  if (const int error = launch(through_norm, dim3(warps(in)), kThreads, stream, in, keys, norms, g))
    return error;
  return launch(back_in_time, heads, kThreads, stream, in, keys, norms, g);
}

}  // namespace nn
