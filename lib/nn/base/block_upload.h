#pragma once
// Rows of the host's memory on their way to a device that has no room for all of them.

#include <c10/core/Event.h>

#include <array>
#include <cstdint>
#include <optional>

#include "nn/base/torch.h"

namespace nn {

/// Gives the rows block by block. While one is computed with, the next is copied to pinned memory
/// and from there, in a stream of its own: two blocks are there and two are pinned, whatever the
/// rows take. The host waits until the block before the last one has left. Not thread safe.
class BlockUpload {
 public:
  /// rows (N, ...) on the CPU, contiguous, which may be a mapped file. To the CPU nothing is
  /// copied.
  BlockUpload(const torch::Tensor& rows, std::int64_t block_rows, torch::Device device);

  /// The next block (at most block_rows, ...), for the current stream, until the next call;
  /// undefined at the end.
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
  std::optional<c10::Stream> beside_;  // of the device
  std::array<Slot, 2> slots_;
};

}  // namespace nn
