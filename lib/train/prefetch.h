#pragma once
// Reads and uploads the next micro-batch during the training on the present one.

#include <c10/core/Event.h>

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "nn/base/torch.h"
#include "shard/dataset.h"
#include "train/batches.h"
#include "train/target_shard.h"

namespace train {

/// Yields the share's micro-batches of steps `first`, first + 1, ...; a thread always reads one
/// ahead and uploads it to `device` on a separate stream. Not thread safe. `data`, `order` and
/// `targets` (null: none) must outlive the object, which uses the first two exclusively.
class Prefetch {
 public:
  Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, Share share = {},
           TokenRules rules = {}, torch::Device device = torch::kCPU,
           const TargetShard* targets = nullptr);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  /// Returns the next micro-batch; its tensors are on the device when the caller's stream uses
  /// them. Rethrows errors of reading.
  MicroBatch next();
  /// Returns the total seconds that next() has waited.
  double waited_s() const { return waited_s_; }

 private:
  // A micro-batch and the event of its upload; no event on the CPU.
  struct Ahead {
    MicroBatch micro;
    std::optional<c10::Event> copied = std::nullopt;
  };
  void begin();  // reads micro-batch share_.at(read_)
  Ahead upload(MicroBatch micro) const;
  const shard::Dataset& data_;
  Order& order_;
  const Share share_;
  const TokenRules rules_;
  const TargetShard* const targets_;
  const torch::Device device_;
  std::optional<c10::Stream> beside_;  // upload stream of the device
  std::int64_t read_;                  // of the share
  std::future<Ahead> ahead_;
  double waited_s_ = 0;
};

}  // namespace train
