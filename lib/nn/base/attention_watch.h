#pragma once
// Looking on while a model attends.

#include <functional>

#include "nn/base/torch.h"

namespace nn {

/// Told once a layer, first to last: the weights (B, heads, S) that the call's last query gives to
/// the S keys it may see. Rows sum to 1.
using AttentionWatch = std::function<void(const torch::Tensor& weights)>;

/// What an architecture also is if its attention can be watched.
class WatchedAttention {
 public:
  virtual ~WatchedAttention() = default;
  /// From the next forward on; an empty function: nobody watches.
  void watch(AttentionWatch watch) { watch_ = std::move(watch); }

 protected:
  const AttentionWatch* watcher() const { return watch_ ? &watch_ : nullptr; }

 private:
  AttentionWatch watch_;
};

/// softmax(scores + mask) of the last query, whose scores are (B, heads, 1, S); mask (..., T, S) or
/// undefined -> (B, heads, S).
inline torch::Tensor last_weights(torch::Tensor scores, const torch::Tensor& mask) {
  if (mask.defined()) scores = scores + mask.narrow(-2, mask.size(-2) - 1, 1);
  return scores.softmax(-1).squeeze(2);
}

}  // namespace nn
