// Decoding of gated linear attention (nn/arch/gla.h) and of the gated delta rule
// (nn/arch/gla.h).

#include "infer/loops/layered_models.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/gla.h"

namespace infer {
namespace {

/// Supports --gla-update sum. A row's state is (heads, d_key, d_value); rotated keys include the
/// token's position in the row.
class GlaPart : public StatePart {
 public:
  GlaPart(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
      const std::string& decay, double norm_epsilon)
      : StatePart(d / 2 * (d / heads)), d_(d), heads_(heads), d_key_(d / 2 / heads),
        d_value_(d / heads), decay_(decay == "gated"   ? Decay::gated
                                    : decay == "fixed" ? Decay::fixed
                                                       : Decay::none),
        in_(weights.affine(name + ".c_in", 3 * d, d)),
        project_(weights.affine(name + ".c_proj", d, d)),
        norm_(weights.norm(name + ".norm", d_value_, norm_epsilon)) {
    if (decay_ == Decay::fixed) by_place_.frequency = nn::rope_frequencies({}, d_key_);
    if (decay_ != Decay::gated) return;
    gate_down_ = weights.affine(name + ".gate_down", nn::kGlaGateRank, d);
    gate_up_ = weights.affine(name + ".gate_up", d / 2, nn::kGlaGateRank);
  }
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    parts_.fit(chunk.n, 3 * d_);
    low_.fit(chunk.n, padded(nn::kGlaGateRank));
    decays_.fit(chunk.n, d_ / 2);
    read_.fit(chunk.n, padded(d_));
    turns_.fit(chunk.n, d_key_);
    if (decay_ != Decay::fixed) return;
    for (const auto& run : chunk.runs)
      for (std::int64_t i = 0; i < run.count; ++i)
        by_place_.at(run.position + i, turns_.row(run.begin + i));
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    const auto n = chunk.n;
    in_.multiply(x.data, n, x.stride, share, parts_.data(), parts_.stride());
    if (decay_ == Decay::gated) {
      gate_down_.multiply(x.data, n, x.stride, share, low_.data(), low_.stride());
#pragma omp barrier
      gate_up_.multiply(low_.data(), n, low_.stride(), share, decays_.data(), decays_.stride());
    }
    run_heads(chunk, share, heads_, project_, read_, y, ldy,
        [&](const Run& run, std::int64_t h) { head(run, h); });
  }

 private:
  // Computes one head of a row's tokens in order.
  void head(const Run& run, std::int64_t head) {
    float* const state = this->state(run.row) + head * d_key_ * d_value_;
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d_key_)));
    const auto fixed = static_cast<float>(1 - std::exp2(-5 - static_cast<double>(head)));
    for (auto i = run.begin; i < run.begin + run.count; ++i) {
      float* const q = parts_.row(i) + head * d_key_;
      float* const k = q + d_ / 2;
      float* const v = parts_.row(i) + d_ + head * d_value_;
      float* const gate = v + d_;
      float* const decay = decays_.row(i) + head * d_key_;
      float* const out = read_.row(i) + head * d_value_;
      if (decay_ == Decay::gated) {
        gla_decays(decay, d_key_);
      } else {
        std::fill_n(decay, d_key_, decay_ == Decay::fixed ? fixed : 1.0f);
      }
      if (decay_ == Decay::fixed)
        for (float* const turned : {q, k})
          turn_pairs(turns_.row(i), turns_.row(i) + d_key_ / 2, d_key_ / 2, turned);
      gla_step(q, k, decay, v, d_key_, d_value_, scale, state, out);
      norm_(out, out);
      silu(gate, d_value_);
      times(gate, d_value_, out);
    }
  }

  enum class Decay { gated, fixed, none };
  std::int64_t d_, heads_, d_key_, d_value_;  // the last two are for one head
  Decay decay_;
  Turns by_place_;  // rotations of queries and keys, with fixed decays
  Affine in_, gate_down_, gate_up_, project_;
  LayerNormed norm_;
  Buffer parts_, low_, decays_, read_;  // q, k, v, r (n, 3 d); (n, rank); (n, d / 2); (n, d)
  Buffer turns_;                        // cosines and sines (n, d_key)
};

/// A row's state is (heads, d_key, d_value), then the inputs that the convolution needs again,
/// (taps - 1, 2 d).
class DeltaPart : public StatePart {
 public:
  DeltaPart(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
      std::int64_t taps, double norm_epsilon)
      : StatePart(d / 2 * (d / heads) + (taps - 1) * 2 * d), d_(d), heads_(heads),
        d_key_(d / 2 / heads), d_value_(d / heads), taps_(taps) {
    const bool decays = weights.has(name + ".a_log");
    in_ = weights.affine(name + ".c_in", 3 * d, d);
    gates_ = weights.affine(name + ".gates", decays ? 2 * heads : heads, d);
    project_ = weights.affine(name + ".c_proj", d, d);
    norm_ = weights.norm(name + ".norm", d_value_, norm_epsilon, /*rms=*/true);
    if (taps > 1)
      filters_ = weights.kept(weights.tensor(name + ".convolution.weight", {2 * d, taps}).t());
    if (!decays) return;
    log_rates_ = weights.vector(name + ".a_log", heads);
    rate_biases_ = weights.vector(name + ".a_bias", heads);
  }
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    parts_.fit(chunk.n, 3 * d_);
    gated_.fit(chunk.n, gates_.matrix.out());
    mixed_.fit(chunk.n, 3 * d_);
    read_.fit(chunk.n, padded(d_));
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    const auto n = chunk.n;
    in_.multiply(x.data, n, x.stride, share, parts_.data(), parts_.stride());
    gates_.multiply(x.data, n, x.stride, share, gated_.data(), gated_.stride());
    run_heads(chunk, share, heads_, project_, read_, y, ldy,
        [&](const Run& run, std::int64_t h) { head(run, h); });
  }

 private:
  // Computes one head of a row's tokens in order.
  void head(const Run& run, std::int64_t head) {
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

  std::int64_t d_, heads_, d_key_, d_value_, taps_;
  Affine in_, gates_, project_;
  const float* filters_ = nullptr;                             // (taps, 2 d)
  const float *log_rates_ = nullptr, *rate_biases_ = nullptr;  // (heads); null: no decay
  LayerNormed norm_;
  // q, k, v, r (n, 3 d); (n, 2 heads); q, k, v after the convolution, and errors (n, 3 d); (n, d)
  Buffer parts_, gated_, mixed_, read_;
};

std::unique_ptr<Part> gla_mixer(
    LayeredModel& of, const std::string& layer, const nn::ModelOptions& options) {
  const auto d = options.shape.d_model, heads = options.shape.heads;
  const auto epsilon = options.transformer.norm_epsilon;
  if (options.gla.update == "delta")
    return std::make_unique<DeltaPart>(
        of.weights, layer + ".mixer", d, heads, options.gla.convolution, epsilon);
  return std::make_unique<GlaPart>(
      of.weights, layer + ".mixer", d, heads, options.gla.decay, epsilon);
}

}  // namespace

LayeredModel layered_gla(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto d = shape.d_model;
  const auto epsilon = model.options.transformer.norm_epsilon;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    out.steps.push_back(
        {out.weights.norm(name + ".ln_1", d, epsilon), gla_mixer(out, name, model.options)});
    out.steps.push_back(
        {out.weights.norm(name + ".ln_2", d, epsilon), feed_forward(out, name, model.options)});
  }
  out.final_norm = out.weights.norm("ln_f", d, epsilon);
  return out;
}

}  // namespace infer
