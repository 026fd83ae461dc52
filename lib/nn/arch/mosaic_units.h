#pragma once
// Memory units (Zhang et al. 2024, "Memory Mosaics"): associative memories that apply kernel
// smoothing to their stored pairs.
// Rearranges a batch for Memory Mosaics: each row's real tokens come first, and each completes a
// pair with its predecessor.

#include "nn/layers/attention.h"

namespace nn {

/// Data of one call, common to all layers: rows of T tokens, real tokens first.
///
/// A pair consists of a token's key and the value that the next token completes. A pair uses the
/// slot of the token that completes it, so a query sees the slots up to its own.
struct MosaicCall {
  State* state = nullptr;      ///< null: nothing is carried
  KeyValues* cache = nullptr;  ///< of the pairs; null if bounded
  SlotBound bound;
  torch::Tensor pairs;  ///< (B, T) bool, on the CPU: tokens that complete a pair; if bounded
  const AttentionCallback* watch = nullptr;
  /// No carried state and no padding: the first token has no slot.
  bool opening = true;
  /// Mask over the slots, added to scores; undefined: all slots, or `causal`.
  torch::Tensor mask;
  bool causal = false;
  /// (B, T, 1): 0 for queries without a pair, else 1; undefined: all 1.
  torch::Tensor sees;
  torch::Tensor last;  ///< (B): last real token of each row; undefined: T - 1
  torch::Tensor none;  ///< (B, 1) bool: rows without a real token; undefined: none

  /// Returns the State's tensor `name`, (B, d), or zeros in the type of a step of x.
  torch::Tensor carried(const std::string& name, const torch::Tensor& x) const;
  /// Stores x (B, T, d) at each row's last real token; rows without one keep `before`.
  void carry(const std::string& name, const torch::Tensor& x, const torch::Tensor& before) const;
};

/// Scalars for each head. They are stored divided by 10, which makes them learn ten times as fast.
///   decay       = exp(-|10 decay|)
///   key scale   = exp(min(10 key_scale, 5))
///   value scale = exp(10 value_scale)
struct UnitScalars {
  torch::Tensor decay, key_scale, value_scale;
};
/// Transforms stored scalars to the used values.
UnitScalars used_scalars(const UnitScalars& stored);

/// Computes y_t = sum over s < t of softmax_s(k_t . k_s) v_s, then c_proj: x (B, T, d) -> (B, T,
/// d). Keys are leaky averages and serve as queries; v_s = Norm(mix u_s + (1 - mix) u_{s+1}). The
/// first token gets 0. `maps` computes keys (first d rows) and values u. State: NAME.sums,
/// NAME.value (B, d), NAME.k, NAME.v. If bounded, NAME.k and NAME.v contain the slots, (B, heads, d
/// / heads, slots), and NAME.marks is int64 (B, heads, 2, slots): see SlotMarks.
class ContextualUnit : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit ContextualUnit(const ShapeOptions& shape);
  torch::Tensor forward(const torch::Tensor& x, const MosaicCall& call, const std::string& name);
  torch::Tensor decay() const;  ///< (heads): lambda
  void first_values() override;

 private:
  /// Reads the pairs: keys (B, T, d), pairs' keys and values (B, n, d) -> (B, T, d); n is T - 1 if
  /// opening.
  torch::Tensor read(const torch::Tensor& keys, const torch::Tensor& pair_keys,
      const torch::Tensor& values, const MosaicCall& call, const std::string& name);

  /// Reads the pairs from bounded slots.
  torch::Tensor read_bounded(const torch::Tensor& keys, const torch::Tensor& pair_keys,
      const torch::Tensor& values, const MosaicCall& call, const std::string& name);

  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> maps_, c_proj_;
  UnitScalars scalars_;
  torch::Tensor mix_;
};

/// Computes y_t = sum over slots of softmax(k_t . K) V, then c_proj, with `slots` learned pairs for
/// each head. The key's scale is squared, because slots have no scale. State: NAME.sums (B, d).
class PersistentUnit : public torch::nn::Module, public OwnFirstValues {
 public:
  PersistentUnit(const ShapeOptions& shape, std::int64_t slots);
  torch::Tensor forward(const torch::Tensor& x, const MosaicCall& call, const std::string& name);
  torch::Tensor decay() const;  ///< (heads): lambda
  void first_values() override;

 private:
  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> map_, c_proj_;
  UnitScalars scalars_;
  torch::Tensor memory_keys_, memory_values_;  // (heads, slots, d / heads)
};

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
