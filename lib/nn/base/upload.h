#pragma once
// Asynchronous copy from the host to a device.
// Streams rows from host memory to a device that cannot hold all of them.
// Asynchronous copy from a device to the host.

#include <c10/core/Event.h>

#include "core/base.h"
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

 private:
  friend torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options);
  torch::Tensor give(const torch::Tensor& host, torch::Device device);
  Uploads& uploads_;
  bool complete_;
  std::size_t given_ = 0;
  core::ScopedValue<SameUploads*> same_;
};

/// Yields the rows block by block. During the computation on one block, the next is copied to
/// pinned memory and then to the device on a separate stream. Two blocks on the device and two in
/// pinned memory exist at any time, independent of the number of rows. The host waits for the
/// upload of the last block but one. Not thread safe.
class BlockUpload {
 public:
  /// rows (N, ...) are contiguous on the CPU and may be a mapped file. If `device` is the CPU,
  /// nothing is copied.
  BlockUpload(const torch::Tensor& rows, std::int64_t block_rows, torch::Device device);

  /// Returns the next block (at most block_rows, ...) for use on the current stream, valid until
  /// the next call; undefined after the last block.
  torch::Tensor next();

 private:
  struct Slot {
    torch::Tensor pinned, there;
    std::optional<c10::Event> copied, used;
  };
  void send(std::int64_t block);
  c10::Stream current() const;
  torch::Tensor rows_;
  std::int64_t block_rows_, blocks_, given_ = 0;
  torch::Device device_;
  std::optional<c10::Stream> beside_;  // upload stream of the device
  std::array<Slot, 2> slots_;
};

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
