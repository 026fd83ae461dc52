#pragma once
// Gated linear attention (Yang et al. 2023): a linear recurrence whose state is a matrix a head.

#include <memory>
#include <vector>

#include "nn/base/architecture.h"
#include "nn/base/model_options.h"
#include "nn/layers/block.h"
#include "nn/layers/layers.h"

namespace nn {

inline constexpr std::int64_t kGlaGateRank = 16;

/// x (B, T, d) -> (B, T, d): gated linear attention. Keys are half as wide as values:
///   q, k, v, r = c_in(x); decay = sigmoid(gate_up(gate_down(x)))^(1/16), one for each channel of
///   the keys; o = gla_scan(q / sqrt(d_key), k, decay, v); c_proj(swish(r) norm(o)), the norm of
///   each head alone. No positions.
class GatedLinearAttention : public torch::nn::Module {
 public:
  GatedLinearAttention(const ShapeOptions& shape, double norm_epsilon);
  /// `state` (B, heads, d_key, d_value) goes on. `real` (B, T, 1): 0 at padding, which changes no
  /// state; undefined: none is.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& real, torch::Tensor& state);
  torch::Tensor first_state(std::int64_t rows, const torch::TensorOptions& options) const;

 private:
  std::int64_t heads_, d_;
  std::shared_ptr<Linear> c_in_, gate_down_, gate_up_, c_proj_;
  std::shared_ptr<LayerNorm> norm_;
};

/// Layers x += mixer(ln_1(x)); x += mlp(ln_2(x)), a last norm. The feed-forward networks and norms
/// are the transformer's. g is the input of the last mlp, or the output. State: "h.0.state", ...
class Gla : public Architecture {
 public:
  Gla(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GatedLinearAttention> mixer;
    std::shared_ptr<FeedForward> mlp;
  };
  ShapeOptions shape_;
  std::shared_ptr<Embedding> wte_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
