#include "train/prefetch.h"

#include <chrono>
#include <utility>

namespace train {

Prefetch::Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, Share share,
                   std::vector<std::int64_t> unscored)
    : data_(data), order_(order), share_(share), unscored_(std::move(unscored)) {
  begin(first * share_.of + share_.begin);
}

Prefetch::~Prefetch() {
  if (ahead_.valid()) ahead_.wait();
}

void Prefetch::begin(std::int64_t index) {
  ahead_ = std::async(std::launch::async, [this, index] {
    auto micro = read_batch(data_, order_.rows(index), index);
    leave_unscored(micro, unscored_);
    return micro;
  });
}

MicroBatch Prefetch::next() {
  const auto start = std::chrono::steady_clock::now();
  MicroBatch batch = ahead_.get();
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool last = (batch.index + 1) % share_.of == (share_.begin + share_.count) % share_.of;
  begin(batch.index + 1 + (last ? share_.of - share_.count : 0));
  return batch;
}

}  // namespace train
