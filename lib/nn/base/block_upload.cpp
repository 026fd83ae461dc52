#include "nn/base/block_upload.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>

namespace nn {

using torch::Tensor;

BlockUpload::BlockUpload(const Tensor& rows, std::int64_t block_rows, torch::Device device)
    : rows_(rows),
      block_rows_(block_rows),
      blocks_((rows.size(0) + block_rows - 1) / block_rows),
      device_(device) {
  if (!device.is_cpu())
    beside_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

c10::Stream BlockUpload::current() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

void BlockUpload::send(std::int64_t block) {
  if (block >= blocks_) return;
  Slot& slot = slots_[static_cast<std::size_t>(block % 2)];
  if (slot.copied) {
    slot.copied->synchronize();
  } else {
    auto sizes = rows_.sizes().vec();
    sizes[0] = std::min(block_rows_, sizes[0]);
    slot.pinned = torch::empty(sizes, rows_.options().pinned_memory(true));
    slot.there = torch::empty(sizes, rows_.options().device(device_));
    slot.copied.emplace(device_.type());
    slot.used.emplace(device_.type());
    slot.used->record(current());  // after earlier uses of this memory
  }
  const Tensor from = rows_.slice(0, block * block_rows_, (block + 1) * block_rows_);
  const Tensor pinned = slot.pinned.slice(0, 0, from.size(0));
  pinned.copy_(from);
  const c10::StreamGuard beside(*beside_);
  slot.used->block(*beside_);
  slot.there.slice(0, 0, from.size(0)).copy_(pinned, /*non_blocking=*/true);
  slot.copied->record(*beside_);
}

Tensor BlockUpload::next() {
  if (!beside_) {
    const std::int64_t block = given_++;
    if (block >= blocks_) return {};
    return rows_.slice(0, block * block_rows_, (block + 1) * block_rows_);
  }
  if (given_ > 0) slots_[static_cast<std::size_t>((given_ - 1) % 2)].used->record(current());
  if (given_ == blocks_) return {};
  if (given_ == 0) send(0);
  send(given_ + 1);
  const std::int64_t block = given_++;
  Slot& slot = slots_[static_cast<std::size_t>(block % 2)];
  slot.copied->block(current());
  const std::int64_t rows = std::min(block_rows_, rows_.size(0) - block * block_rows_);
  return slot.there.slice(0, 0, rows);
}

}  // namespace nn
