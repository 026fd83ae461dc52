#pragma once
// The recurrence of gated linear attention for one head of one row, forward and backward.

#include <cstdint>

namespace nn {

/// Pointers to a head's part of one row of T steps. Steps of q, k, decay and their gradients are
/// `key_stride` apart, those of v, o and theirs `value_stride`.
template <class Float>
struct GlaHead {
  std::int64_t steps, d_key, d_value, key_stride, value_stride;
  const Float *q, *k, *decay;  // (T, d_key)
  const Float* v;              // (T, d_value)
};

/// `state` (d_key, d_value) goes from before the first step to behind the last; writes o (T,
/// d_value).
template <class Float>
void gla_forward(const GlaHead<Float>& head, Float* state, Float* o);

template <class Float>
struct GlaGradients {
  const Float* d_o;                      // (T, d_value)
  Float *d_q, *d_k, *d_log_decay, *d_v;  // written
};

/// `state` (d_key, d_value): before the first step, spent. `d_state`: the gradient of the last
/// state, becomes that of the first. `work`: d_key floats.
template <class Float>
void gla_backward(const GlaHead<Float>& head, Float* state, Float* d_state, Float* work,
                  const GlaGradients<Float>& g);

}  // namespace nn
