#pragma once
// Single steps of the recurrences on raw float32 memory. Formulas are in the headers of the
// operations; the sums of a head have a fixed order.

#include <cstdint>

namespace infer {

/// Computes sums = decay sums + x and key = scale sums / |sums| for n values of a head
/// (nn/ops/leaky.h).
void leaky_key(const float* x, std::int64_t n, float decay, float scale, float* sums, float* key);
/// Computes sums = e^(level' - level) sums + e^(gate - level) x with level = max(gate, decay +
/// level') for the previous level', and key = sums / |sums| (nn/ops/leaky.h).
void gated_key(
    const float* x, std::int64_t n, float gate, float decay, float* level, float* sums, float* key);
inline constexpr float kNoLevel = -1e30f;  ///< level before the first step
/// Computes value = scale m / |m| with m = mix before + (1 - mix) after.
void mixed_value(
    const float* before, const float* after, std::int64_t n, float mix, float scale, float* value);

/// Computes x = sigmoid(x)^(1/16) in place.
void gla_decays(float* x, std::int64_t n);
/// Advances a head's state (d_key, d_value) by a step and computes its output o (d_value) times
/// `scale` (nn/ops/gla_scan.h).
void gla_step(const float* q, const float* k, const float* decay, const float* v,
    std::int64_t d_key, std::int64_t d_value, float scale, float* state, float* o);

/// Computes out = sum over j of weight[j] x_j over n channels, for the `taps` newest inputs x_j,
/// oldest first: past (taps - 1, stride) and x. Shifts `past` by a step. weight (taps, stride).
void short_convolution(const float* x, const float* weight, std::int64_t taps, std::int64_t stride,
    std::int64_t n, float* past, float* out);
/// Computes x = x / sqrt(|x|^2 + epsilon) in place.
void to_length_one(float* x, std::int64_t n, float epsilon);
/// Returns exp(-exp(log_rate) softplus(x)).
float delta_decay(float x, float log_rate);
float sigmoid(float x);
/// Advances by the delta rule (nn/ops/gla_scan.h), with the arguments of gla_step; error
/// (d_value) is scratch memory.
void delta_step(const float* q, const float* k, float beta, float decay, const float* v,
    std::int64_t d_key, std::int64_t d_value, float* state, float* error, float* o);

/// Advances channels [begin, end) of an LSTM cell of `width`: of_input and of_last (4 width)
/// contain the input's and the last h's contributions to the input, forget, cell and output gates.
/// Updates c and h.
void lstm_step(const float* of_input, const float* of_last, std::int64_t width, std::int64_t begin,
    std::int64_t end, float* c, float* h);

/// Parameters of the SRU++ cell, (d) each; initial offsets are added to the biases.
struct SruCell {
  const float *forget, *highway, *forget_bias, *highway_bias;
};
/// Advances channels [begin, end): gates (3 d), x and h (d); updates c (nn/ops/sru_scan.h).
void sru_step(const float* gates, const float* x, const SruCell& cell, std::int64_t d,
    std::int64_t begin, std::int64_t end, float* c, float* h);

/// Computes y = x + factor z over n values.
void add_scaled(const float* x, const float* z, float factor, std::int64_t n, float* y);
/// Computes y *= factor.
void scale(float factor, std::int64_t n, float* y);

}  // namespace infer
