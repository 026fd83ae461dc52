#pragma once
// From the host to a device without waiting for it.

#include "nn/base/torch.h"

namespace nn {

/// `x` as `options` say. Where it is in host memory and they name a GPU, by way of pinned memory:
/// the copy is asked for, and nobody waits until it is done.
torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options);

/// In its own type.
inline torch::Tensor upload(const torch::Tensor& x, torch::Device device) {
  return upload(x, x.options().device(device));
}

}  // namespace nn
