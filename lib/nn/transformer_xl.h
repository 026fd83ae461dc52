#pragma once
// Transformer-XL (Dai et al. 2019): layers that attend to their own past inputs, with relative
// positions, and a memory of a length of its own for each layer (Rae & Razavi 2020).

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/architecture.h"
#include "nn/block.h"
#include "nn/layer_memory.h"
#include "nn/relative_attention.h"

namespace nn {

/// One layer. Norms as Block's: before (pre) or after (post) each sub-layer; a pre-norm covers the
/// memory too. Submodules as Block's, and `biases` where they are not shared.
class XlBlock : public torch::nn::Module {
 public:
  XlBlock(const ShapeOptions& shape, const TransformerOptions& options, bool own_biases);
  /// x (B, T, d); remembered (B, S, d) ends with x; distances (S, d). `ffn_input`, if not null,
  /// receives what mlp reads.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& remembered,
                        const torch::Tensor& distances, const PositionBiases* shared,
                        const KeySight& sight, torch::Tensor* ffn_input);

 private:
  bool pre_norm_;
  double dropout_;
  std::shared_ptr<LayerNorm> ln_1_, ln_2_;
  std::shared_ptr<RelativeAttention> attn_;
  std::shared_ptr<PositionBiases> biases_;
  std::shared_ptr<FeedForward> mlp_;
};

/// Submodules: wte, biases (where shared), h.N, ln_f (pre-norm with final_norm). The options norm,
/// final-norm, activation, bias and norm-epsilon are the transformer's. Dropout also on the
/// distances' vectors. State holds each layer's past inputs (layer_memory.h): the sum of the
/// lengths.
class TransformerXl : public Architecture {
 public:
  /// Throws Error{bad_config} naming the option.
  TransformerXl(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  void set_reach(const Reach& reach) override;
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  torch::Tensor distances(std::int64_t slots, const torch::TensorOptions& options);

  ShapeOptions shape_;
  std::vector<std::int64_t> lengths_;  // a layer
  bool same_length_;
  std::int64_t clamp_;
  std::shared_ptr<Embedding> wte_;
  std::shared_ptr<PositionBiases> biases_;
  std::vector<std::shared_ptr<XlBlock>> blocks_;
  std::shared_ptr<LayerNorm> ln_f_;
  torch::Tensor table_;  // of distances; the nearest are its last rows
};

}  // namespace nn
