#pragma once
// A decoder of transformer blocks, from GPT-2's shape to fairseq's.

#include <memory>
#include <vector>

#include "nn/architecture.h"
#include "nn/block.h"
#include "nn/model_options.h"

namespace nn {

/// Submodules are named as in GPT-2: wte, wpe (learned positions), h.N, ln_f (pre-norm with
/// final_norm). A token's position is the number of its row's real tokens before it since the row
/// was fresh. g is what the last feed-forward network reads (after its norm), or f: --memory-key.
class Transformer : public Architecture, public WatchedAttention {
 public:
  /// Throws Error{bad_config} naming the option.
  explicit Transformer(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} where learned positions run out.
  Hidden forward(const Batch& batch, State* state) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override;
  std::optional<std::int64_t> context() const override;
  void forget(State& state, std::int64_t keep) override;
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  torch::Tensor embed(const Batch& batch, const KvCache& cache);

  ShapeOptions shape_;
  TransformerOptions options_;
  Positions positions_;
  std::shared_ptr<Embedding> wte_;
  std::shared_ptr<Embedding> wpe_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
