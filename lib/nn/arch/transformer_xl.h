#pragma once
// Transformer-XL (Dai et al. 2019): layers that attend to their own past inputs, with relative
// positions, and a memory of a length of its own for each layer (Rae & Razavi 2020).

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nn/base/architecture.h"
#include "nn/layers/block.h"
#include "nn/layers/layer_memory.h"
#include "nn/layers/relative_attention.h"
#include "nn/layers/ring_decoder.h"

namespace nn {

/// One layer. Norms as Block's: before (pre) or after (post) each sub-layer; a pre-norm covers the
/// memory too. Submodules as Block's, and `biases` where they are not shared.
class XlBlock : public torch::nn::Module {
 public:
  XlBlock(const ShapeOptions& shape, const TransformerOptions& options, bool own_biases);
  /// What attention reads of inputs x (B, S, d), and keys and values of that (B, S, 2 d).
  torch::Tensor read(const torch::Tensor& x) const;
  torch::Tensor keys_values(const torch::Tensor& read) const { return attn_->keys_values(read); }
  torch::Tensor positions(const torch::Tensor& distances) const {
    return attn_->positions(distances);
  }
  /// x (B, T, d), `read` of it, keys_values (B, S, 2 d) of all that is remembered and x, positions
  /// (S, heads, width). `ffn_input`, if not null, receives what mlp reads.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& read,
                        const torch::Tensor& keys_values, const torch::Tensor& positions,
                        const PositionBiases* shared, const KeySight& sight,
                        torch::Tensor* ffn_input);

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
/// distances' vectors. State holds each layer's past (layer_memory.h): the sum of the lengths, (B,
/// length, d) of inputs, so that gradient reaches the matrices that read them; where weights stay
/// as they are (evaluation mode without gradient) keys and values instead, (B, length, 2 d), made
/// once a token, and the positions are projected once. A State is of one kind.
class TransformerXl : public Architecture, public RingDecoder {
 public:
  /// Throws Error{bad_config} naming the option.
  TransformerXl(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool carries() const override { return true; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  void set_reach(const LayerReach& reach) override;
  const std::vector<std::int64_t>& lengths() const { return lengths_; }  ///< a layer's memory
  bool same_length() const { return same_length_; }
  std::int64_t clamp_length() const { return clamp_; }  ///< 0: none
  std::shared_ptr<Embedding> embedding() override { return wte_; }
  void train(bool on = true) override;

 private:
  Hidden run(const torch::Tensor& ids, LayerPast& past);
  torch::Tensor distances(std::int64_t slots, const torch::TensorOptions& options);
  torch::Tensor kept_positions(std::size_t layer, std::int64_t slots,
                               const torch::TensorOptions& options);

  ShapeOptions shape_;
  std::vector<std::int64_t> lengths_;  // a layer
  bool same_length_;
  std::int64_t clamp_;
  std::shared_ptr<Embedding> wte_;
  std::shared_ptr<PositionBiases> biases_;
  std::vector<std::shared_ptr<XlBlock>> blocks_;
  std::shared_ptr<LayerNorm> ln_f_;
  torch::Tensor table_;  // of distances; the nearest are its last rows
  // Of each layer, by the number of rows they were made for, of which the last are taken. None goes
  // while weights stay, since what is recorded finds them where they are.
  std::vector<std::map<std::int64_t, torch::Tensor>> positions_;
};

}  // namespace nn
