#pragma once
// How much each token counts where a protocol counts a window for less. Undefined: all count 1.

#include "nn/base/torch.h"

namespace infer {

/// Values of tokens times their weights, which are of a shape that goes with theirs.
inline torch::Tensor weighted(const torch::Tensor& values, const torch::Tensor& weight) {
  return weight.defined() ? values * weight : values;
}

/// The weights as 1 on average.
inline torch::Tensor even(const torch::Tensor& weight) {
  return weight.defined() ? weight / weight.mean() : weight;
}

}  // namespace infer
