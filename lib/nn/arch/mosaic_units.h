#pragma once
// Memory units (Zhang et al. 2024, "Memory Mosaics"): associative memories that smooth kernels over
// what they hold.

#include <string>

#include "nn/base/architecture.h"
#include "nn/base/attention_watch.h"
#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/init.h"
#include "nn/layers/kv_cache.h"
#include "nn/layers/layers.h"

namespace nn {

/// One call, as all layers see it: rows of T tokens, the real ones first.
///
/// A pair is a token's key with the value that the next token completes. A pair gets the slot of
/// the token that completes it, so that a query sees the slots up to its own.
struct MosaicCall {
  State* state = nullptr;      ///< null: nothing is carried
  KeyValues* cache = nullptr;  ///< of the pairs; null where bounded
  SlotBound bound;
  torch::Tensor pairs;  ///< (B, T) bool, on the CPU: where a token completes one; if bounded
  const AttentionWatch* watch = nullptr;
  /// Nothing is carried in and nothing is padded: the first token has no slot.
  bool opening = true;
  /// What queries see of the slots, added to scores; undefined: all or `causal`.
  torch::Tensor mask;
  bool causal = false;
  /// (B, T, 1): 0 where a query has no pair to see, else 1; undefined: all see.
  torch::Tensor sees;
  torch::Tensor last;  ///< (B): each row's last real token; undefined: T - 1
  torch::Tensor none;  ///< (B, 1) bool: rows without a real token; undefined: no row

  /// What the State holds under `name`, (B, d), or zeros like a step of x.
  torch::Tensor carried(const std::string& name, const torch::Tensor& x) const;
  /// Keeps the last real token's part of x (B, T, d); `before` stays in rows without one.
  void carry(const std::string& name, const torch::Tensor& x, const torch::Tensor& before) const;
};

/// Scalars of one number a head. They are stored divided by 10 and so learn ten times as fast.
///   decay       = exp(-|10 decay|)
///   key scale   = exp(min(10 key_scale, 5))
///   value scale = exp(10 value_scale)
struct UnitScalars {
  torch::Tensor decay, key_scale, value_scale;
};
/// What is stored, as it is used.
UnitScalars used_scalars(const UnitScalars& stored);

/// y_t = sum over s < t of softmax_s(k_t . k_s) v_s, then c_proj: x (B, T, d) -> (B, T, d). Keys
/// are leaky averages and serve as queries; v_s = Norm(mix u_s + (1 - mix) u_{s+1}). The first
/// token gets 0. `maps` makes keys (first d rows) and values u. State: NAME.sums, NAME.value (B,
/// d), NAME.k, NAME.v; where bounded, these two hold the slots, (B, heads, d / heads, slots), and
/// NAME.marks is int64 (B, heads, 2, slots): see SlotMarks.
class ContextualUnit : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit ContextualUnit(const ShapeOptions& shape);
  torch::Tensor forward(const torch::Tensor& x, const MosaicCall& call, const std::string& name);
  torch::Tensor decay() const;  ///< (heads): lambda
  void first_values() override;

 private:
  /// Keys (B, T, d), pairs' keys and values (B, n, d) -> (B, T, d); n is T - 1 where opening.
  torch::Tensor read(const torch::Tensor& keys, const torch::Tensor& pair_keys,
                     const torch::Tensor& values, const MosaicCall& call, const std::string& name);

  /// The same from slots.
  torch::Tensor read_bounded(const torch::Tensor& keys, const torch::Tensor& pair_keys,
                             const torch::Tensor& values, const MosaicCall& call,
                             const std::string& name);

  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> maps_, c_proj_;
  UnitScalars scalars_;
  torch::Tensor mix_;
};

/// y_t = sum over slots of softmax(k_t . K) V, then c_proj: `slots` learned pairs a head. The key's
/// scale is squared, for the slots have none. State: NAME.sums (B, d).
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

}  // namespace nn
