#pragma once
// Asynchronous copy from the host to a device.

#include <cstddef>
#include <utility>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// Returns `x` with the device and type of `options`. A copy from host memory to a GPU goes through
/// pinned memory and is asynchronous.
torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options);

/// Copies without a change of type.
inline torch::Tensor upload(const torch::Tensor& x, torch::Device device) {
  return upload(x, x.options().device(device));
}

/// Tensors that upload() copied for a piece of work, in order: (host, device).
using Uploads = std::vector<std::pair<torch::Tensor, torch::Tensor>>;

/// Makes this thread's upload() return the device tensors of an earlier run of the work if the
/// values are equal, while the object exists.
class SameUploads {
 public:
  /// `complete`: upload() throws std::logic_error for any other copy.
  SameUploads(Uploads& uploads, bool complete);
  ~SameUploads();
  SameUploads(const SameUploads&) = delete;
  SameUploads& operator=(const SameUploads&) = delete;

 private:
  friend torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options);
  torch::Tensor give(const torch::Tensor& host, torch::Device device);
  Uploads& uploads_;
  bool complete_;
  std::size_t given_ = 0;
  SameUploads* before_;
};

}  // namespace nn
