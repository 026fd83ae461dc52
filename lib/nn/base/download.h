#pragma once
// Asynchronous copy from a device to the host.

#include <c10/core/Event.h>

#include <optional>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// Copies tensors of one device, of any sizes, to pinned memory in one transfer. Operators launched
/// afterwards may change or free the tensors. CPU tensors are not copied unless `dtype` differs.
class Download {
 public:
  Download() = default;
  Download(const std::vector<torch::Tensor>& tensors, torch::Dtype dtype);
  /// Returns the tensors on the CPU, in their order. Waits only for operators launched before the
  /// copy and for the copy.
  std::vector<torch::Tensor> get();

 private:
  std::vector<torch::Tensor> here_;
  std::optional<c10::Event> copied_;
};

}  // namespace nn
