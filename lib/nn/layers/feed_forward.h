#pragma once
// The second sub-layer of a block: what is done to each token by itself.

#include <cstdint>
#include <memory>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/layers.h"

namespace nn {

/// A feed-forward network, or what a block has in its place: experts, a memory.
class TokenNetwork : public torch::nn::Module {
 public:
  /// x (..., d) -> the same shape; no token depends on another.
  virtual torch::Tensor forward(const torch::Tensor& x) const = 0;
};

/// Between the two matrices of a feed-forward network.
struct Inner {
  Activation activation;
  bool gated;
  double dropout;
  /// Columns that the first matrix gives for `width` that the second reads.
  std::int64_t wide(std::int64_t width) const { return gated ? 2 * width : width; }
  /// (..., wide(width)) -> (..., width): the activation; gated, activation(first half) * second
  /// half (Shazeer 2020). Dropped out where `training`.
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
