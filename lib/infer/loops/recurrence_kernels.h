#pragma once
// One step of each recurrence, on raw float32 memory. The formulas are those of the operations
// named; sums of a head are taken in one order.

#include <cstdint>

namespace infer {

/// sums = decay sums + x; key = scale sums / |sums|: n values of a head (nn/ops/leaky.h).
void leaky_key(const float* x, std::int64_t n, float decay, float scale, float* sums, float* key);
/// value = scale m / |m|, m = mix before + (1 - mix) after.
void mixed_value(const float* before, const float* after, std::int64_t n, float mix, float scale,
                 float* value);

/// x becomes sigmoid(x)^(1/16).
void gla_decays(float* x, std::int64_t n);
/// state (d_key, d_value) of a head goes a step on, o (d_value) is read from it, times `scale`
/// (nn/ops/gla_scan.h).
void gla_step(const float* q, const float* k, const float* decay, const float* v,
              std::int64_t d_key, std::int64_t d_value, float scale, float* state, float* o);

/// Channels [begin, end) of a cell of `width`: gates (4 width) hold what the input and what the last h
/// give for input, forget, cell and output; c and h go a step on.
void lstm_step(const float* of_input, const float* of_last, std::int64_t width, std::int64_t begin,
               std::int64_t end, float* c, float* h);

/// The parameters of SRU++'s cell, (d) each; biases with what is added to them.
struct SruCell {
  const float *forget, *highway, *forget_bias, *highway_bias;
};
/// Channels [begin, end): gates (3 d), x and h (d); c goes a step on (nn/ops/sru_scan.h).
void sru_step(const float* gates, const float* x, const SruCell& cell, std::int64_t d,
              std::int64_t begin, std::int64_t end, float* c, float* h);

/// y = x + factor z over n values.
void add_scaled(const float* x, const float* z, float factor, std::int64_t n, float* y);
/// y *= factor.
void scale(float factor, std::int64_t n, float* y);

}  // namespace infer
