#pragma once
// The second sub-layer of a block, which processes each token independently.

#include <cstdint>
#include <memory>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/layers.h"

namespace nn {

/// Base class of the second sub-layer: a feed-forward network, experts, or a memory.
class TokenNetwork : public torch::nn::Module {
 public:
  /// Maps x (..., d) to the same shape. Tokens do not affect each other.
  virtual torch::Tensor forward(const torch::Tensor& x) const = 0;
};

/// The activation between the two matrices of a feed-forward network.
struct Inner {
  Activation activation;
  bool gated;
  double dropout;
  /// Returns the output width of the first matrix if the second matrix reads `width`.
  std::int64_t wide(std::int64_t width) const { return gated ? 2 * width : width; }
  /// Maps (..., wide(width)) to (..., width) with the activation; if gated, with activation(first
  /// half) * second half (Shazeer 2020). Applies dropout if `training`.
  torch::Tensor of(const torch::Tensor& x, bool training) const;
};

/// x (..., d) -> (..., d): c_proj(inner(c_fc(x))).
class FeedForward : public TokenNetwork {
 public:
  FeedForward(const ShapeOptions& shape, Activation activation, bool bias, bool gated = false);
  torch::Tensor forward(const torch::Tensor& x) const override;
  bool gated() const { return inner_.gated; }
  const Linear& c_fc() const { return *c_fc_; }
  const Linear& c_proj() const { return *c_proj_; }

 private:
  Inner inner_;
  std::shared_ptr<Linear> c_fc_, c_proj_;
};

}  // namespace nn
