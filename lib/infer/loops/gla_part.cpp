#include "infer/loops/gla_part.h"

#include <algorithm>
#include <cmath>

#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/gla_mixers.h"

namespace infer {

GlaPart::GlaPart(const DecodeWeights& weights, const std::string& name, std::int64_t d,
                 std::int64_t heads, const std::string& decay, double norm_epsilon)
    : StatePart(d / 2 * (d / heads)),
      d_(d),
      heads_(heads),
      d_key_(d / 2 / heads),
      d_value_(d / heads),
      decay_(decay == "gated"   ? Decay::gated
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

void GlaPart::prepare(const Chunk& chunk) {
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

void GlaPart::run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) {
  const auto n = chunk.n;
  in_.multiply(x.data, n, x.stride, share, parts_.data(), parts_.stride());
  if (decay_ == Decay::gated) {
    gate_down_.multiply(x.data, n, x.stride, share, low_.data(), low_.stride());
#pragma omp barrier
    gate_up_.multiply(low_.data(), n, low_.stride(), share, decays_.data(), decays_.stride());
  }
#pragma omp barrier
  chunk.each_head(share, heads_, [&](const Run& run, std::int64_t h) { head(run, h); });
#pragma omp barrier
  project_.multiply(read_.data(), n, read_.stride(), share, y, ldy);
}

// Computes one head of a row's tokens in order.
void GlaPart::head(const Run& run, std::int64_t head) {
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

}  // namespace infer
