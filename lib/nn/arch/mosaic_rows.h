#pragma once
// A batch as Memory Mosaics read it: in each row the real tokens first, each of which completes a
// pair with the one before it.

#include "nn/arch/mosaic_units.h"
#include "nn/base/architecture.h"
#include "nn/layers/kv_ring.h"

namespace nn {

class MosaicRows {
 public:
  /// `may_open`: rows without padding that carry nothing in may be read as MosaicCall::opening.
  /// Throws Error{bug} if the State is of other rows.
  MosaicRows(const Batch& batch, State* state, bool may_open);

  const torch::Tensor& ids() const { return ids_; }      ///< (B, T), where the inputs are
  const torch::Tensor& pairs() const { return pairs_; }  ///< see MosaicCall; (B, T - 1) if opening
  bool opening() const { return opening_; }
  /// Of the cache of pairs, which resets the State's fresh rows.
  Batch slots() const;
  /// What follows from the rows alone.
  MosaicCall call(State* state) const;
  /// After the fresh rows were reset: which rows have had a token.
  void mark_started(State& state) const { state.tensors["started"] = started_after_; }
  /// `hidden`, of ids(), in the batch's order.
  Hidden in_order(const Hidden& hidden) const;

 private:
  torch::Tensor fresh_, ids_, pairs_;
  torch::Tensor started_after_;  // (B) bool on the CPU
  torch::Tensor order_;          // (B, T); undefined: as they come
  torch::Tensor last_, none_;
  bool opening_;
};

/// Of tokens that go on, whose pairs lie in a ring: the pair that a token completes has its slot,
/// and place().first becomes that of the oldest pair that is seen.
MosaicCall call_in_ring(KvRing& ring, State& state);
/// (B, T, 1) bool: whether a query has a pair to see, but for how near it is.
torch::Tensor sees_pairs(const KvRing& ring);

}  // namespace nn
