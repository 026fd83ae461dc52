#pragma once
// The next micro-batch is read while this one is trained on.

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "shard/dataset.h"
#include "train/batches.h"

namespace train {

/// Hands out the share's micro-batches, those of update `first`, first + 1, ..., with one always
/// read ahead in a thread. Not thread safe itself. `data` and `order` must outlive it and are its
/// own while it lives.
class Prefetch {
 public:
  Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, Share share = {},
           std::vector<std::int64_t> unscored = {});
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  /// Throws what reading threw.
  MicroBatch next();
  /// Seconds that next() has waited in all.
  double waited_s() const { return waited_s_; }

 private:
  void begin(std::int64_t index);
  const shard::Dataset& data_;
  Order& order_;
  const Share share_;
  const std::vector<std::int64_t> unscored_;
  std::future<MicroBatch> ahead_;
  double waited_s_ = 0;
};

}  // namespace train
