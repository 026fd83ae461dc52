#pragma once
// From a device to the host, asked for now and waited for when it is needed.

#include <c10/core/Event.h>

#include <optional>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// Tensors of one device, of any sizes, on their way in one copy to pinned memory. What the device
/// is told afterwards may change or free them. Of the CPU's nothing is copied but to another type.
class Download {
 public:
  Download() = default;
  Download(const std::vector<torch::Tensor>& tensors, torch::Dtype dtype);
  /// All of them on the CPU, in their order. Waits for what the device was told before the copy,
  /// and for no more.
  std::vector<torch::Tensor> get();

 private:
  std::vector<torch::Tensor> here_;
  std::optional<c10::Event> copied_;
};

}  // namespace nn
