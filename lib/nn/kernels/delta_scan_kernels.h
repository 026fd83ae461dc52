#pragma once
// The gated delta rule in chunks of kDeltaChunk steps, forward and backward. The CPU functions
// compute one head of one row, the CUDA functions all heads of all rows.

#include <cstdint>

#include "nn/kernels/host_device.h"

namespace nn {

inline constexpr std::int64_t kDeltaChunk = 32;

/// Pointers to one head of one row of T steps. The step stride is `key_stride` for q, k and their
/// gradients, `value_stride` for v, o and their gradients, `gate_stride` for beta, log_decay and
/// their gradients.
template <class Float> struct DeltaHead {
  std::int64_t steps, d_key, d_value, key_stride, value_stride, gate_stride;
  const Float *q, *k;             // (T, d_key)
  const Float* v;                 // (T, d_value)
  const Float *beta, *log_decay;  // (T); log_decay at most 0
  std::int64_t chunks() const { return (steps + kDeltaChunk - 1) / kDeltaChunk; }
};

/// Writes o (T, d_value). Advances `state` (d_key, d_value) from before the first step to after the
/// last step.
template <class Float> void delta_forward(const DeltaHead<Float>& head, Float* state, Float* o);

template <class Float> struct DeltaGradients {
  const Float* d_o;                               // (T, d_value)
  Float *d_q, *d_k, *d_v, *d_beta, *d_log_decay;  // written
};

/// Computes all gradients. `state` (d_key, d_value) is the state before the first step and is
/// overwritten. `d_state` is the gradient of the last state and becomes the gradient of the first
/// state. The function repeats the forward pass. It stores the states before all chunks and T rows
/// of d_value of one head.
template <class Float>
void delta_backward(
    const DeltaHead<Float>& head, Float* state, Float* d_state, const DeltaGradients<Float>& g);

/// All heads of B rows of T steps, contiguous: q, k (B, T, heads, d_key), v (B, T, heads, d_value),
/// beta, log_decay (B, T, heads). Gradients have the same layouts.
struct DeltaInputs {
  std::int64_t rows, steps, heads, d_key, d_value;
  const float *q, *k, *v, *beta, *log_decay;
  TESSERA_BOTH std::int64_t chunks() const { return (steps + kDeltaChunk - 1) / kDeltaChunk; }
};

/// Returns the number of floats in the square matrices of all chunks.
inline std::int64_t delta_squares(const DeltaInputs& in) {
  return 3 * kDeltaChunk * kDeltaChunk * in.rows * in.heads * in.chunks();
}

/// Buffers of the backward pass. `states` and `d_states` (B, heads, chunks + 1, d_key, d_value)
/// hold the state before the first chunk, the state after each chunk, and their gradients. The
/// caller fills the first state and the last gradient.
struct DeltaRoom {
  float* squares;  // delta_squares() floats
  float *states, *d_states;
  float *z, *d_u;  // (B, T, heads, d_value)
};

/// All pointers are device pointers. The forward function writes o (B, T, heads, d_value) and
/// advances `state` (B, heads, d_key, d_value) from before the first step to after the last step.
/// `stream` is a cudaStream_t. Both return a cudaError_t, 0 if the launches succeed.
int delta_forward_cuda(const DeltaInputs& in, float* squares, float* state, float* o, void* stream);
int delta_backward_cuda(
    const DeltaInputs& in, const DeltaRoom& room, const DeltaGradients<float>& g, void* stream);

}  // namespace nn
