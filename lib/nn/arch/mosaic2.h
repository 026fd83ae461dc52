#pragma once
// Memory Mosaics v2 (Zhang and Bottou 2025, "Memory Mosaics at scale", arXiv 2507.03285): three
// levels of memory, without queries and without positions.

#include <memory>
#include <string>
#include <vector>

#include "nn/arch/mosaic2_units.h"
#include "nn/base/architecture.h"
#include "nn/layers/block.h"
#include "nn/layers/ring_decoder.h"

namespace nn {

/// x += short_term(ln_1(x)) + long_term(ln_1(x)); x += mlp(ln_2(x)); ln_f at the end.
///
/// short_term  the newest h pairs: token t sees pairs t - h to t - 1, as figure 11 has it (eq. 10
///             stops at t - h + 1); h is --short-term
/// long_term   what lies further back: token t sees pairs up to t - m. m is --long-term-delay, and
///             in training drawn anew for each call, evenly, from there to --long-term-delay-most;
///             from torch's generator, as dropout is
/// mlp         the persistent memory, c_proj(silu(W_1 x) * W_3 x) with W_1 and W_3 in c_fc
///
/// Both memories are as wide as the model and have weights of their own: the paper's counts of
/// parameters, 9.9 billion and, without long-term memory, 8.3 billion, follow from that. The sum is
/// its projection of both outputs side by side. Its figures call the norms "normalize"; here they
/// are RMSNorm, as in the transformers it compares with. g is what mlp reads, or ln_f's output:
/// --memory-key. State: "started" (B) bool on the CPU, the cache of pairs, and what the memories
/// keep: a token's worth grows the State until it forgets.
class Mosaic2 : public Architecture, public RingDecoder {
 public:
  static constexpr double kNormEpsilon = 1e-5;

  /// Throws Error{bad_config} naming the option.
  Mosaic2(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool carries() const override { return true; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::forget; }
  /// Of `keep` tokens, keep - 1 pairs remain and the newest token's, still to be completed. The
  /// averages of keys stay; n of the bandwidth counts what remains.
  void forget(State& state, std::int64_t keep) override;
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GatedMemory> short_term, long_term;
    std::shared_ptr<FeedForward> mlp;
  };
  Hidden run(const torch::Tensor& ids, const MosaicCall& call, const PairSight& near,
             const PairSight& far);
  std::int64_t delay() const;

  ShapeOptions shape_;
  Mosaic2Options options_;
  std::shared_ptr<Embedding> wte_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
