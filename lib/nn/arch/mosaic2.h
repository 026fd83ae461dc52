#pragma once
// Memory Mosaics v2 (Zhang and Bottou 2025, "Memory Mosaics at scale", arXiv 2507.03285): three
// levels of memory, without queries and positions.

#include <memory>
#include <string>
#include <vector>

#include "nn/arch/carried_state.h"
#include "nn/arch/mosaic2_units.h"
#include "nn/base/architecture.h"
#include "nn/layers/block.h"
#include "nn/layers/ring_decoder.h"

namespace nn {

/// Layers compute x += short_term(ln_1(x)) + long_term(ln_1(x)); x += mlp(ln_2(x)), followed by
/// ln_f.
///
/// short_term  the newest h pairs: token t sees pairs t - h to t - 1, as in figure 11 (eq. 10 stops
///             at t - h + 1); h is --short-term
/// long_term   older pairs: token t sees pairs up to t - m. m is --long-term-delay; in training
///             each call draws it uniformly from there to --long-term-delay-most, with torch's
///             generator
/// mlp         the persistent memory, c_proj(silu(W_1 x) * W_3 x) with W_1 and W_3 in c_fc; in the
///             layers of --memory-layer, a ProductKeyMemory
///
/// Both memories have the model's width and separate weights, consistent with the paper's parameter
/// counts of 9.9 billion and, without long-term memory, 8.3 billion. The sum equals the paper's
/// projection of both outputs side by side. The paper's figures call the norms "normalize"; here
/// they are RMSNorm, as in the transformers of its comparison. The memory key is the input of mlp,
/// or the output of ln_f: --memory-key. State: "started" (B) bool on the CPU, the cache of pairs,
/// and the memories' state. The State grows with each token until it forgets.
class Mosaic2 : public Architecture, public RingDecoder {
 public:
  static constexpr double kNormEpsilon = 1e-5;

  /// Throws Error{bad_config} that names the option.
  Mosaic2(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool carries() const override { return true; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::forget; }
  /// Keeps keep - 1 pairs and the newest token's, which the next token completes. Averages of keys
  /// are unchanged; n in the bandwidth counts the remaining pairs.
  void forget(State& state, std::int64_t keep) override;
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GatedMemory> short_term, long_term;
    std::shared_ptr<TokenNetwork> mlp;
  };
  Hidden run(const torch::Tensor& ids, const MosaicCall& call, const PairVisibility& near,
             const PairVisibility& far);
  std::int64_t delay() const;

  ShapeOptions shape_;
  Mosaic2Options options_;
  std::shared_ptr<Embedding> wte_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
