#include "infer/loops/delta_part.h"

#include <algorithm>

#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/gla_mixers.h"

namespace infer {

DeltaPart::DeltaPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
                     std::int64_t heads, std::int64_t taps, double norm_epsilon)
    : StatePart(d / 2 * (d / heads) + (taps - 1) * 2 * d),
      d_(d),
      heads_(heads),
      d_key_(d / 2 / heads),
      d_value_(d / heads),
      taps_(taps) {
  const bool decays = weights.has(name + ".a_log");
  in_ = weights.affine(name + ".c_in", 3 * d, d);
  gates_ = weights.affine(name + ".gates", decays ? 2 * heads : heads, d);
  project_ = weights.affine(name + ".c_proj", d, d);
  norm_ = weights.norm(name + ".norm", d_value_, norm_epsilon);
  norm_.rms = true;
  if (taps > 1)
    filters_ = weights.kept(weights.tensor(name + ".convolution.weight", {2 * d, taps}).t());
  if (!decays) return;
  log_rates_ = weights.vector(name + ".a_log", heads);
  rate_biases_ = weights.vector(name + ".a_bias", heads);
}

void DeltaPart::prepare(const Chunk& chunk) {
  parts_.fit(chunk.n, 3 * d_);
  gated_.fit(chunk.n, gates_.matrix.out());
  mixed_.fit(chunk.n, 3 * d_);
  read_.fit(chunk.n, padded(d_));
}

void DeltaPart::run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) {
  const auto n = chunk.n;
  in_.multiply(x.data, n, x.stride, share, parts_.data(), parts_.stride());
  gates_.multiply(x.data, n, x.stride, share, gated_.data(), gated_.stride());
#pragma omp barrier
  chunk.each_head(share, heads_, [&](const Run& run, std::int64_t h) { head(run, h); });
#pragma omp barrier
  project_.multiply(read_.data(), n, read_.stride(), share, y, ldy);
}

// Computes one head of a row's tokens in order.
void DeltaPart::head(const Run& run, std::int64_t head) {
  float* const states = this->state(run.row);
  float *const state = states + head * d_key_ * d_value_, *const past =
                                                              states + heads_ * d_key_ * d_value_;
  struct Channels {
    std::int64_t at, n;
  };
  const Channels q{head * d_key_, d_key_}, k{d_ / 2 + head * d_key_, d_key_},
      v{d_ + head * d_value_, d_value_};
  for (auto i = run.begin; i < run.begin + run.count; ++i) {
    float *const in = parts_.row(i), *const mixed = mixed_.row(i);
    for (const auto& [at, n] : {q, k, v}) {
      if (taps_ > 1) {
        short_convolution(in + at, filters_ + at, taps_, 2 * d_, n, past + at, mixed + at);
      } else {
        std::copy_n(in + at, n, mixed + at);
      }
      silu(mixed + at, n);
    }
    for (const auto& [at, n] : {q, k})
      to_length_one(mixed + at, n, static_cast<float>(nn::GatedDelta::kLengthEpsilon));
    const float* const gates = gated_.row(i);
    const float decay =
        log_rates_ == nullptr
            ? 1.0f
            : delta_decay(gates[heads_ + head] + rate_biases_[head], log_rates_[head]);
    float *const out = read_.row(i) + head * d_value_, *const gate = in + v.at + d_;
    delta_step(mixed + q.at, mixed + k.at, sigmoid(gates[head]), decay, mixed + v.at, d_key_,
               d_value_, state, mixed + v.at + d_, out);
    norm_(out, out);
    silu(gate, d_value_);
    times(gate, d_value_, out);
  }
}

}  // namespace infer
