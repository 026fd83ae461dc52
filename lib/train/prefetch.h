#pragma once
// The next micro-batch is read, and given to the device, while this one is trained on.

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

/// Hands out the share's micro-batches, those of update `first`, first + 1, ..., with one always
/// read ahead in a thread, and on its way to `device` in a stream of its own. Not thread safe
/// itself. `data`, `order` and `targets` (null: none) must outlive it, and the first two are its
/// own while it lives.
class Prefetch {
 public:
  Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, Share share = {},
           TokenRules rules = {}, torch::Device device = torch::kCPU,
           const TargetShard* targets = nullptr);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  /// What the models compute with is on the device as soon as the caller's stream comes to use it.
  /// Throws what reading threw.
  MicroBatch next();
  /// Seconds that next() has waited in all.
  double waited_s() const { return waited_s_; }

 private:
  // A micro-batch, and what tells when its copies are done; nothing on the CPU.
  struct Ahead {
    MicroBatch micro;
    std::optional<c10::Event> copied = std::nullopt;
  };
  void begin(std::int64_t index);
  Ahead upload(MicroBatch micro) const;
  const shard::Dataset& data_;
  Order& order_;
  const Share share_;
  const TokenRules rules_;
  const TargetShard* const targets_;
  const torch::Device device_;
  std::optional<c10::Stream> beside_;  // of the device
  std::future<Ahead> ahead_;
  double waited_s_ = 0;
};

}  // namespace train
