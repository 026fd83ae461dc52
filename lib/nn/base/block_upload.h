#pragma once
// Streams rows from host memory to a device that cannot hold all of them.

#include <c10/core/Event.h>

#include <array>
#include <cstdint>
#include <optional>

#include "nn/base/torch.h"

namespace nn {

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

}  // namespace nn
