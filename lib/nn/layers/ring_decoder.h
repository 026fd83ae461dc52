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
  /// One call of ids (B, T), all of it where the ids are: what grows goes into the ring, whose
  /// place is told, and what does not into `kept`, whose rows are zeros where a text begins. Not in
  /// training.
  virtual Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) = 0;
  /// Before the call in which rows where `fresh` (B) bool is true begin, whose rows of `kept` are
  /// zeros: what an encoder reads of `source` (B, S) int64, -1 is padding; both on the CPU.
  virtual void read_sources(const torch::Tensor& /*source*/, const torch::Tensor& /*fresh*/,
                            State& /*kept*/) {}
};

}  // namespace nn
