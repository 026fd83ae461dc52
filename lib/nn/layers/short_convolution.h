#pragma once
// Short convolution before the queries, keys and values of recurrences.

#include <cstdint>

#include "nn/base/torch.h"
#include "nn/layers/init.h"

namespace nn {

/// A causal depthwise convolution with swish (swish_convolution.h). Initial values are uniform in
/// +-1 / sqrt(taps), or 0.
class ShortConvolution : public torch::nn::Module, public OwnFirstValues {
 public:
  /// The taps are `apart` steps apart. The last tap is the current step.
  ShortConvolution(std::int64_t width, std::int64_t taps, std::int64_t apart = 1,
                   bool first_zero = false);
  /// Maps x (B, T, width) to the same shape. `past` (B, (taps - 1) apart, width) holds the previous
  /// steps and is replaced for the next call; undefined: 0. `count` (B) int64 is the number of real
  /// steps of each row, which come first; undefined: T.
  torch::Tensor forward(const torch::Tensor& x, torch::Tensor& past,
                        const torch::Tensor& count) const;
  void first_values() override;

 private:
  torch::Tensor weight_;  // (width, taps)
  std::int64_t apart_;
  bool first_zero_;
};

}  // namespace nn
