#pragma once
// Memory Mosaics (Zhang et al. 2024, arXiv 2405.06394): blocks of contextual and persistent memory
// units, without queries and positions.

#include "nn/arch/mosaic_units.h"

namespace nn {

/// Layers compute x += contextual(ln_1(x)); x += persistent(ln_2(x)), followed by ln_f.
/// --scale-output multiplies the output by 1 / sqrt(d_model). The memory key is the input of the
/// last persistent unit, or the output of ln_f: --memory-key. State: "started" (B) bool on the CPU,
/// the cache of pairs, and the units' state. A callback (nn/layers/attention.h) receives the
/// contextual units' weights: key s is that of the pair of tokens s and s + 1.
class Mosaic : public CarryingArchitecture, public WatchedAttention {
 public:
  static constexpr double kNormEpsilon = 1e-5;

  /// Throws Error{bad_config} that names the option.
  Mosaic(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool in_rings() const override { return bound_.slots == 0; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  /// With bounded memories the State has constant size.
  Carry carry() const override { return bound_.slots > 0 ? Carry::constant : Carry::forget; }
  /// Keeps keep - 1 pairs and the newest token's, which the next token completes. Leaky averages
  /// are unchanged.
  void forget(State& state, std::int64_t keep) override;
  /// Bounded memories have no gradient and report no attention weights.
  void bound_slots(const SlotBound& bound) override { bound_ = bound; }
  const SlotBound& bound() const { return bound_; }

  struct Decay {
    std::int64_t layer;
    std::string unit;      ///< contextual or persistent
    torch::Tensor lambda;  ///< (heads): factor on the sums at each step
  };
  /// Returns the decays of all leaky averages, layer by layer.
  std::vector<Decay> decays() const;

 private:
  Hidden run(const torch::Tensor& ids, const MosaicCall& call);

  MosaicOptions options_;
  SlotBound bound_;
  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<ContextualUnit> contextual;
    std::shared_ptr<PersistentUnit> persistent;
  };
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
