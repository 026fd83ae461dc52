#pragma once
// Interface of architectures that decode on a device with fixed operators in each step.

#include "nn/base/architecture.h"
#include "nn/base/state.h"
#include "nn/layers/kv_ring.h"

namespace nn {

class RingDecoder {
 public:
  virtual ~RingDecoder() = default;
  /// Returns whether the present configuration supports decode(); otherwise only forward() decodes.
  virtual bool in_rings() const { return true; }
  /// Returns whether every token changes `kept`, so that tokens cannot be rolled back.
  virtual bool carries() const { return false; }
  /// Computes one call of ids (B, T), entirely on the ids' device. State that grows is written to
  /// the ring at its current place. Other state is written to `kept`, whose rows are zero where a
  /// text begins. Not for training.
  virtual Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) = 0;
  /// Encodes `source` (B, S) int64, where -1 is padding. Call it before the call in which the rows
  /// with `fresh` (B) bool begin; their rows of `kept` must be zero. Both tensors are on the CPU.
  virtual void read_sources(const torch::Tensor& /*source*/, const torch::Tensor& /*fresh*/,
                            State& /*kept*/) {}
};

}  // namespace nn
