#include "nn/kernels/sru_scan_kernels.h"

#include "nn/kernels/launch.h"

namespace nn {
namespace {

constexpr int kThreads = 128;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// A thread computes one channel of one row, step by step, so that the reads of a warp are
// coalesced.
__global__ void sru_forward(SruInputs<float> s, SruResults<float> out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (i >= s.d) return;
  const std::int64_t n = s.row_steps == nullptr ? s.steps : s.row_steps[b];
  const float wf = s.forget[i], wr = s.highway[i], bf = s.forget_bias[i], br = s.highway_bias[i];
  const float m = s.dropout == nullptr ? 1.0f : s.dropout[b * s.d + i];
  float c = s.start[b * s.d + i];
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t at = (b * s.steps + t) * s.d + i;
    const float* const u = s.gates + (b * s.steps + t) * 3 * s.d + i;
    const float f = sigmoid(u[s.d] + wf * c + bf), r = m * sigmoid(u[2 * s.d] + wr * c + br);
    c = f * (c - u[0]) + u[0];
    out.cells[at] = c;
    out.h[at] = s.x[at] + r * (c - s.x[at]);
  }
  out.last[b * s.d + i] = c;
}

__global__ void sru_backward(SruInputs<float> s, const float* cells, SruGradients<float> g) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (i >= s.d) return;
  const std::int64_t n = s.row_steps == nullptr ? s.steps : s.row_steps[b], channel = b * s.d + i;
  const float wf = s.forget[i], wr = s.highway[i], bf = s.forget_bias[i], br = s.highway_bias[i];
  const float m = s.dropout == nullptr ? 1.0f : s.dropout[channel];
  float dc = g.d_last == nullptr ? 0.0f : g.d_last[channel];
  float d_wf = 0, d_wr = 0, d_bf = 0, d_br = 0;
  for (std::int64_t t = n - 1; t >= 0; --t) {
    const std::int64_t at = (b * s.steps + t) * s.d + i, gate = (b * s.steps + t) * 3 * s.d + i;
    const float* const u = s.gates + gate;
    const float before = t == 0 ? s.start[channel] : cells[at - s.d], dh = g.d_h[at];
    const float f = sigmoid(u[s.d] + wf * before + bf), r = sigmoid(u[2 * s.d] + wr * before + br);
    const float d_cell = dc + dh * r * m;
    const float d_f = d_cell * (before - u[0]) * f * (1 - f);
    const float d_r = dh * m * (cells[at] - s.x[at]) * r * (1 - r);
    g.d_x[at] = dh * (1 - r * m);
    g.d_gates[gate] = d_cell * (1 - f);
    g.d_gates[gate + s.d] = d_f;
    g.d_gates[gate + 2 * s.d] = d_r;
    dc = d_cell * f + d_f * wf + d_r * wr;
    d_wf += d_f * before, d_wr += d_r * before, d_bf += d_f, d_br += d_r;
  }
  g.d_start[channel] = dc;
  float* const weights = g.d_weights + b * 4 * s.d + i;
  weights[0] = d_wf, weights[s.d] = d_wr, weights[2 * s.d] = d_bf, weights[3 * s.d] = d_br;
}

dim3 channels(const SruInputs<float>& in) {
  return dim3(
      static_cast<unsigned>((in.d + kThreads - 1) / kThreads), static_cast<unsigned>(in.rows));
}

}  // namespace

int sru_forward_cuda(const SruInputs<float>& in, const SruResults<float>& out, void* stream) {
  return launch(sru_forward, channels(in), kThreads, stream, in, out);
}

int sru_backward_cuda(
    const SruInputs<float>& in, const float* cells, const SruGradients<float>& g, void* stream) {
  return launch(sru_backward, channels(in), kThreads, stream, in, cells, g);
}

}  // namespace nn
