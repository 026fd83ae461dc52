#pragma once
// From the host to a device without waiting for it.

#include <cstddef>
#include <utility>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// `x` as `options` say. Where it is in host memory and they name a GPU, by way of pinned memory:
/// the copy is asked for, and nobody waits until it is done.
torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options);

/// In its own type.
inline torch::Tensor upload(const torch::Tensor& x, torch::Device device) {
  return upload(x, x.options().device(device));
}

/// What upload() gave a piece of work, in order: on the host, on the device.
using Uploads = std::vector<std::pair<torch::Tensor, torch::Tensor>>;

/// While one lives, this thread's upload() gives what it gave the same work before, the same
/// tensor, where it is given the same numbers.
class SameUploads {
 public:
  /// `complete`: nothing but that; else upload() throws std::logic_error.
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
