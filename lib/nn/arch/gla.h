#pragma once
// Gated linear attention and related linear recurrences, whose state is a matrix for each head.

#include <memory>
#include <vector>

#include "nn/arch/carried_state.h"
#include "nn/arch/gla_mixers.h"
#include "nn/base/architecture.h"
#include "nn/base/model_options.h"
#include "nn/layers/block.h"
#include "nn/layers/layers.h"
#include "nn/layers/ring_decoder.h"

namespace nn {

/// Layers compute x += mixer(ln_1(x)); x += mlp(ln_2(x)), followed by a final norm; --gla-update
/// and --gla-decay select the mixer. Feed-forward networks, memories in their place and norms are
/// the transformer's. The memory key is the input of the last mlp, or the output. State:
/// "h.0.state", ...; see gla_mixers.h.
class Gla : public Architecture, public RingDecoder {
 public:
  Gla(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool carries() const override { return true; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  Hidden run(const torch::Tensor& ids, const GlaCall& call);

  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GlaMixer> mixer;
    std::shared_ptr<TokenNetwork> mlp;
  };
  ShapeOptions shape_;
  std::shared_ptr<Embedding> wte_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
