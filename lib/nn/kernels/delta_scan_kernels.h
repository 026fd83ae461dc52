#pragma once
// The gated delta rule in chunks of kDeltaChunk steps, forward and backward: on the CPU a head of a
// row, on a GPU all of them.

#include <cstdint>

#include "nn/kernels/host_device.h"

namespace nn {

inline constexpr std::int64_t kDeltaChunk = 32;

/// Pointers to a head's part of one row of T steps. Steps of q, k and their gradients are
/// `key_stride` apart, those of v, o and theirs `value_stride`, those of beta, log_decay and theirs
/// `gate_stride`.
template <class Float>
struct DeltaHead {
  std::int64_t steps, d_key, d_value, key_stride, value_stride, gate_stride;
  const Float *q, *k;             // (T, d_key)
  const Float* v;                 // (T, d_value)
  const Float *beta, *log_decay;  // (T); log_decay at most 0
  std::int64_t chunks() const { return (steps + kDeltaChunk - 1) / kDeltaChunk; }
};

/// `state` (d_key, d_value) goes from before the first step to behind the last; writes o (T,
/// d_value).
template <class Float>
void delta_forward(const DeltaHead<Float>& head, Float* state, Float* o);

template <class Float>
struct DeltaGradients {
  const Float* d_o;                               // (T, d_value)
  Float *d_q, *d_k, *d_v, *d_beta, *d_log_decay;  // written
};

/// `state` (d_key, d_value): before the first step, spent. `d_state`: the gradient of the last
/// state, becomes that of the first. Goes forward once more first: of one head at a time it holds
/// the states before its chunks and T rows of d_value.
template <class Float>
void delta_backward(const DeltaHead<Float>& head, Float* state, Float* d_state,
                    const DeltaGradients<Float>& g);

/// All heads of B rows of T steps, everything contiguous: q, k (B, T, heads, d_key), v (B, T,
/// heads, d_value), beta, log_decay (B, T, heads). Gradients are in the same order.
struct DeltaInputs {
  std::int64_t rows, steps, heads, d_key, d_value;
  const float *q, *k, *v, *beta, *log_decay;
  TESSERA_BOTH std::int64_t chunks() const { return (steps + kDeltaChunk - 1) / kDeltaChunk; }
};

/// Floats that squares of the chunks take.
inline std::int64_t delta_squares(const DeltaInputs& in) {
  return 3 * kDeltaChunk * kDeltaChunk * in.rows * in.heads * in.chunks();
}

/// What a backward needs beside its inputs. `states` and `d_states` (B, heads, chunks + 1, d_key,
/// d_value): the states before the first chunk and behind each, and their gradients. The first of
/// the states and the last of the gradients are given.
struct DeltaRoom {
  float* squares;  // delta_squares()
  float *states, *d_states;
  float *z, *d_u;  // (B, T, heads, d_value)
};

/// Pointers are the device's. `state` (B, heads, d_key, d_value) goes from before the first step to
/// behind the last; writes o (B, T, heads, d_value). `stream` is a cudaStream_t. Return a
/// cudaError_t, 0 if the launches went well.
int delta_forward_cuda(const DeltaInputs& in, float* squares, float* state, float* o, void* stream);
int delta_backward_cuda(const DeltaInputs& in, const DeltaRoom& room,
                        const DeltaGradients<float>& g, void* stream);

}  // namespace nn
