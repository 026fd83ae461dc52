#pragma once
// Transformer-XL (Dai et al. 2019): layers attend to their own past inputs with relative positions;
// each layer has its own memory length (Rae & Razavi 2020).

#include "nn/layers/block.h"
#include "nn/layers/layer_memory.h"

namespace nn {

/// One layer. Norms are placed before (pre) or after (post) each sub-layer, as in Block; a pre-norm
/// also applies to the memory. Submodules are those of Block, and `biases` unless shared. `instead`
/// as for Block.
class XlBlock : public torch::nn::Module {
 public:
  XlBlock(const ShapeOptions& shape, const TransformerOptions& options, bool own_biases,
      const BlockNetwork& instead);
  /// read() returns the attention's input for x (B, S, d); keys_values() its keys and values (B, S,
  /// 2 d).
  torch::Tensor read(const torch::Tensor& x) const;
  torch::Tensor keys_values(const torch::Tensor& read) const { return attn_->keys_values(read); }
  torch::Tensor positions(const torch::Tensor& distances) const {
    return attn_->positions(distances);
  }
  /// x (B, T, d), `read` of x, keys_values (B, S, 2 d) of the past and x, positions (S, heads,
  /// width). `ffn_input`, if not null, receives the input of mlp.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& read,
      const torch::Tensor& keys_values, const torch::Tensor& positions,
      const PositionBiases* shared, const KeyVisibility& visibility, torch::Tensor* ffn_input);

 private:
  bool pre_norm_;
  double dropout_;
  std::shared_ptr<LayerNorm> ln_1_, ln_2_;
  std::shared_ptr<RelativeAttention> attn_;
  std::shared_ptr<PositionBiases> biases_;
  std::shared_ptr<TokenNetwork> mlp_;
};

/// Submodules: wte, biases (if shared), h.N, ln_f (pre-norm with final_norm). Uses the
/// transformer's options norm, final-norm, activation, bias and norm-epsilon. Dropout also applies
/// to the vectors of distances. The State holds each layer's past (layer_memory.h): inputs (B, sum
/// of lengths, d), so that gradient reaches the matrices that read them; in evaluation mode without
/// gradient, keys and values (B, length, 2 d), computed once for each token, with positions
/// projected once. A State has one of the two forms.
class TransformerXl : public CarryingArchitecture {
 public:
  /// Throws Error{bad_config} that names the option.
  TransformerXl(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  void set_reach(const LayerReach& reach) override;
  const std::vector<std::int64_t>& lengths() const { return lengths_; }  ///< memory lengths
  bool same_length() const { return same_length_; }
  std::int64_t clamp_length() const { return clamp_; }  ///< 0: none
  void train(bool on = true) override;

 private:
  Hidden run(const torch::Tensor& ids, LayerPast& past);
  torch::Tensor distances(std::int64_t slots, const torch::TensorOptions& options);
  torch::Tensor kept_positions(
      std::size_t layer, std::int64_t slots, const torch::TensorOptions& options);

  std::vector<std::int64_t> lengths_;  // for each layer
  bool same_length_;
  std::int64_t clamp_;
  std::shared_ptr<PositionBiases> biases_;
  std::vector<std::shared_ptr<XlBlock>> blocks_;
  std::shared_ptr<LayerNorm> ln_f_;
  torch::Tensor table_;  // of distances; the nearest are the last rows
  // For each layer, by the number of rows; later calls use the last rows. Entries stay while the
  // weights are unchanged, because recordings refer to their addresses.
  std::vector<std::map<std::int64_t, torch::Tensor>> positions_;
};

}  // namespace nn
