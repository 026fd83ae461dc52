#pragma once
// Callback that receives attention weights during forward.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

/// Called once for each layer, from first to last, with the weights (B, heads, S) that the call's
/// last query gives to the S keys visible to it. Rows sum to 1.
using AttentionCallback = std::function<void(const torch::Tensor& weights)>;

/// Additional interface of architectures that report their attention weights.
class WatchedAttention {
 public:
  virtual ~WatchedAttention() = default;
  /// Sets the callback from the next forward on. An empty function removes it.
  void watch(AttentionCallback watch) { watch_ = std::move(watch); }

 protected:
  const AttentionCallback* watcher() const { return watch_ ? &watch_ : nullptr; }

 private:
  AttentionCallback watch_;
};

/// Returns the attention weights of the last query, softmax(scores + mask): (B, heads, S). scores
/// (B, heads, 1, S) are the last query's; mask is (..., T, S) or undefined.
inline torch::Tensor last_weights(torch::Tensor scores, const torch::Tensor& mask) {
  if (mask.defined()) scores = scores + mask.narrow(-2, mask.size(-2) - 1, 1);
  return scores.softmax(-1).squeeze(2);
}

}  // namespace nn
