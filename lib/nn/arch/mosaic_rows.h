#pragma once
// Rearranges a batch for Memory Mosaics: each row's real tokens come first, and each completes a
// pair with its predecessor.

#include "nn/arch/mosaic_units.h"
#include "nn/base/architecture.h"
#include "nn/layers/kv_ring.h"

namespace nn {

class MosaicRows {
 public:
  /// `may_open`: allows MosaicCall::opening for rows without padding and carried state. Throws
  /// Error{bug} if the State has other rows.
  MosaicRows(const Batch& batch, State* state, bool may_open);

  const torch::Tensor& ids() const { return ids_; }      ///< (B, T), on the inputs' device
  const torch::Tensor& pairs() const { return pairs_; }  ///< see MosaicCall; (B, T - 1) if opening
  bool opening() const { return opening_; }
  /// Returns the batch for the cache of pairs, which resets the State's fresh rows.
  Batch slots() const;
  /// Returns the parts of the call that follow from the rows.
  MosaicCall call(State* state) const;
  /// Records which rows have had a token; call it after the reset of fresh rows.
  void mark_started(State& state) const { state.tensors["started"] = started_after_; }
  /// Returns `hidden`, in the order of ids(), in the order of the batch.
  Hidden in_order(const Hidden& hidden) const;

 private:
  torch::Tensor fresh_, ids_, pairs_;
  torch::Tensor started_after_;  // (B) bool on the CPU
  torch::Tensor order_;          // (B, T); undefined: unchanged order
  torch::Tensor last_, none_;
  bool opening_;
};

/// Returns the call for tokens that continue, with pairs in a ring: a completed pair uses the slot
/// of the token that completes it, and place().first becomes the position of the oldest visible
/// pair.
MosaicCall call_in_ring(KvRing& ring, State& state);
/// Returns (B, T, 1) bool: whether a query has a pair, regardless of its distance.
torch::Tensor sees_pairs(const KvRing& ring);

}  // namespace nn
