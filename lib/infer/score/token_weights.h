#pragma once
// Weights of tokens, for protocols that discount some windows. Undefined: all weights are 1.

#include "nn/base/torch.h"

namespace infer {

/// Returns values times weights; the shapes must broadcast.
inline torch::Tensor weighted(const torch::Tensor& values, const torch::Tensor& weight) {
  return weight.defined() ? values * weight : values;
}

/// Returns the weights scaled to mean 1.
inline torch::Tensor even(const torch::Tensor& weight) {
  return weight.defined() ? weight / weight.mean() : weight;
}

}  // namespace infer
