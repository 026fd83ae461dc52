#pragma once
// Features that gates compute from the model's own distribution.

#include "nn/base/torch.h"

namespace infer {

/// Returns the confidence (R, kConfidence), float64, of log-probabilities (R, V) on their device.
torch::Tensor confidence_of(const torch::Tensor& log_probs);

}  // namespace infer
