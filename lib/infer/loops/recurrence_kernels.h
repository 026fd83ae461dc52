#pragma once
// One step of each recurrence, on raw float32 memory. The formulas are those of the operations
// named; sums of a head are taken in one order.

#include <cstdint>

namespace infer {

/// sums = decay sums + x; key = scale sums / |sums|: n values of a head (nn/ops/leaky.h).
void leaky_key(const float* x, std::int64_t n, float decay, float scale, float* sums, float* key);
/// sums = e^(level' - level) sums + e^(gate - level) x with level = max(gate, decay + level') of
/// the last level'; key = sums / |sums| (nn/ops/gated_keys.h).
void gated_key(const float* x, std::int64_t n, float gate, float decay, float* level, float* sums,
               float* key);
inline constexpr float kNoLevel = -1e30f;  ///< before the first
/// value = scale m / |m|, m = mix before + (1 - mix) after.
void mixed_value(const float* before, const float* after, std::int64_t n, float mix, float scale,
                 float* value);

/// x becomes sigmoid(x)^(1/16).
void gla_decays(float* x, std::int64_t n);
/// state (d_key, d_value) of a head goes a step on, o (d_value) is read from it, times `scale`
/// (nn/ops/gla_scan.h).
void gla_step(const float* q, const float* k, const float* decay, const float* v,
              std::int64_t d_key, std::int64_t d_value, float scale, float* state, float* o);

/// out = sum over j of weight[j] x_j over n channels, x_j the `taps` newest inputs, the oldest
/// first: past (taps - 1, stride) and x; past goes a step on. weight (taps, stride).
void short_convolution(const float* x, const float* weight, std::int64_t taps, std::int64_t stride,
                       std::int64_t n, float* past, float* out);
/// x becomes x / sqrt(|x|^2 + epsilon).
void to_length_one(float* x, std::int64_t n, float epsilon);
/// exp(-exp(log_rate) softplus(x)).
float delta_decay(float x, float log_rate);
float sigmoid(float x);
/// As gla_step, by the delta rule (nn/ops/delta_scan.h); error (d_value) is work memory.
void delta_step(const float* q, const float* k, float beta, float decay, const float* v,
                std::int64_t d_key, std::int64_t d_value, float* state, float* error, float* o);

/// Channels [begin, end) of a cell of `width`: gates (4 width) hold what the input and what the
/// last h give for input, forget, cell and output; c and h go a step on.
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
