#include "train/prefetch.h"

#include <c10/core/StreamGuard.h>

#include <chrono>
#include <utility>

namespace train {

Prefetch::Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, Share share,
                   TokenRules rules, torch::Device device, const TargetShard* targets)
    : data_(data),
      order_(order),
      share_(share),
      rules_(std::move(rules)),
      targets_(targets),
      device_(device),
      read_(first * share.count) {
  if (!device_.is_cpu())
    beside_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
  begin();
}

Prefetch::~Prefetch() {
  if (ahead_.valid()) ahead_.wait();
}

void Prefetch::begin() {
  const std::int64_t index = share_.at(read_++);
  // If no thread can start, the batch is read when it is needed.
  ahead_ = std::async(std::launch::async | std::launch::deferred, [this, index] {
    const auto rows = order_.rows(index);
    auto micro = read_batch(data_, rows, index);
    apply(rules_, micro);
    if (targets_ != nullptr) micro.teachers = targets_->read(rows, micro.batch.steps());
    return upload(std::move(micro));
  });
}

Prefetch::Ahead Prefetch::upload(MicroBatch micro) const {
  if (!beside_) return {std::move(micro)};
  const c10::StreamGuard beside(*beside_);
  micro.batch = micro.batch.to(device_);
  c10::Event copied(device_.type());
  copied.record(*beside_);
  return {std::move(micro), std::move(copied)};
}

MicroBatch Prefetch::next() {
  const auto start = std::chrono::steady_clock::now();
  Ahead ahead = ahead_.get();
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ahead.copied) {
    const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    ahead.copied->block(stream);
    // The tensors belong to the other stream. record_stream() keeps their memory until this stream
    // has read them.
    const auto& batch = ahead.micro.batch;
    for (const auto& tensor : {batch.inputs, batch.targets, batch.weight, batch.source})
      if (tensor.defined()) tensor.record_stream(stream);
  }
  begin();
  return std::move(ahead.micro);
}

}  // namespace train
