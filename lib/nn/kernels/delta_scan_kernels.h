#pragma once
// The gated delta rule for one head of one row, in chunks of kDeltaChunk steps, forward and
// backward.

#include <cstdint>

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

}  // namespace nn
