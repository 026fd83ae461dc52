#pragma once
// The recurrence of gated linear attention for one head of one row, forward and backward.

#include <cstdint>

namespace nn {

/// Pointers to one head of one row of T steps. The step stride is `key_stride` for q, k, decay and
/// their gradients, `value_stride` for v, o and their gradients.
template <class Float> struct GlaHead {
  std::int64_t steps, d_key, d_value, key_stride, value_stride;
  const Float *q, *k, *decay;  // (T, d_key)
  const Float* v;              // (T, d_value)
};

/// Writes o (T, d_value). Advances `state` (d_key, d_value) from before the first step to after the
/// last step.
template <class Float> void gla_forward(const GlaHead<Float>& head, Float* state, Float* o);

template <class Float> struct GlaGradients {
  const Float* d_o;                      // (T, d_value)
  Float *d_q, *d_k, *d_log_decay, *d_v;  // written
};

/// Computes all gradients. `state` (d_key, d_value) is the state before the first step and is
/// overwritten. `d_state` is the gradient of the last state and becomes the gradient of the first
/// state. `work` holds d_key floats.
template <class Float>
void gla_backward(const GlaHead<Float>& head, Float* state, Float* d_state, Float* work,
    const GlaGradients<Float>& g);

}  // namespace nn
