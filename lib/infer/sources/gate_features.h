#pragma once
// What gates see of the model's own words.

#include "nn/base/torch.h"

namespace infer {

/// Of log p (R, V), the model's own: (R, kConfidence) float64, where they are.
torch::Tensor confidence_of(const torch::Tensor& log_probs);

}  // namespace infer
