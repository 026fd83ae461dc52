#pragma once
// SRU++ (Lei 2021): a simple recurrent unit whose gates come from attention.

#include "nn/layers/attention.h"
#include "nn/layers/layer_memory.h"
#include "nn/ops/sru_scan.h"

namespace nn {

/// Computes z = LayerNorm(q + rezero a), q = project(x), a = attention of q over keys and values of
/// q (without attention: z = LayerNorm(q)); gates = expand(dropout(z)); h is the recurrence's
/// output. Matrices have no biases.
class SruppLayer : public torch::nn::Module, public OwnFirstValues {
 public:
  SruppLayer(const ShapeOptions& shape, const SruppOptions& options, std::int64_t width,
      double norm_epsilon, bool attends);
  /// Initialises the cells' weights uniformly in +-1 and rezero to 0; multiplies the scheme's
  /// values of expand by sqrt(1 - dropout), because dropout increases the variance of its input.
  void first_values() override;
  bool attends() const { return keys_values_ != nullptr; }
  /// project() maps inputs x (B, S, d) to q (B, S, width); keys_values() maps q to keys and values
  /// (B, S, 2 width), if the layer attends.
  torch::Tensor project(const torch::Tensor& x) const { return project_->forward(x); }
  torch::Tensor keys_values(const torch::Tensor& q) const { return keys_values_->forward(q); }
  /// x (B, T, d) and its q; keys_values (B, S, 2 width) of the past and x; replaces cells (B, d) by
  /// those after the last step; steps as in sru_scan. `normalised`, if not null, receives z (B, T,
  /// width).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& q,
      const torch::Tensor& keys_values, const KeyVisibility& visibility, torch::Tensor& cells,
      const torch::Tensor& steps, torch::Tensor* normalised);

 private:
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& keys_values,
      const KeyVisibility& visibility) const;

  std::int64_t heads_;
  double dropout_, attention_dropout_, forget_start_, highway_start_;
  std::shared_ptr<Linear> project_, keys_values_, expand_;
  std::shared_ptr<LayerNorm> norm_;
  torch::Tensor rezero_;  // (1)
  SruWeights weights_;
};

/// An embedding followed by layers. State: "cells" (B, layers, d_model), and the past of layers
/// that attend (layer_memory.h): inputs (B, length, d_model), or keys and values (B, length, 2
/// width) in evaluation mode without gradient. A State has one of the two forms. The memory key is
/// the last layer's z, or the output: --memory-key. The initial biases (--forget-bias,
/// --highway-bias) are added to the parameters, which start at 0.
class Srupp : public CarryingArchitecture {
 public:
  /// Throws Error{bad_config} that names the option.
  Srupp(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  std::int64_t d_key() const override;
  void set_reach(const LayerReach& reach) override;
  std::int64_t width() const { return width_; }                          ///< width of the attention
  const std::vector<std::int64_t>& lengths() const { return lengths_; }  ///< memory lengths
  bool same_length() const { return same_length_; }

 private:
  /// `steps` as in sru_scan.
  Hidden run(const torch::Tensor& ids, LayerPast& past, const torch::Tensor& steps, State* state);

  std::int64_t width_;  // of the attention
  std::vector<std::int64_t> lengths_;
  bool same_length_;
  std::vector<std::shared_ptr<SruppLayer>> layers_;
};

}  // namespace nn
