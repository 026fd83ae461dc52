#pragma once
// Cross-attention of a decoder over an encoder's output.

#include <memory>
#include <string>

#include "nn/base/torch.h"
#include "nn/layers/attention.h"
#include "nn/layers/layers.h"

namespace nn {

/// Keys and values of a source, (B, heads, S, width) each.
struct SourceEntries {
  torch::Tensor keys, values;
};

/// Sources visible to a layer's rows; `entries` null: none.
struct SourceView {
  const SourceEntries* entries = nullptr;
  /// Mask that hides padding.
  const Visibility* visibility = nullptr;
  /// (B, 1, 1), in the type of the hidden vectors: 0 for rows without a source, else 1.
  torch::Tensor present;
};

/// Computes softmax(q k^T / sqrt(width)) v with q = c_q(x), and keys and values from c_kv(source)
/// (Vaswani et al. 2017, section 3.2.3). `bias` applies to all matrices.
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout);
  /// Returns the keys and values of source (B, S, d).
  SourceEntries entries(const torch::Tensor& source) const;
  /// x (B, T, d) -> (B, T, d). `visibility` hides padding; `present` (B, 1, 1) is 0 or 1, in
  /// the type of x: rows without a source get 0.
  torch::Tensor forward(const torch::Tensor& x, const SourceEntries& entries,
                        const Visibility& visibility, const torch::Tensor& present);
  const Linear& c_q() const { return *c_q_; }
  const Linear& c_proj() const { return *c_proj_; }

 private:
  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> c_q_, c_kv_, c_proj_;
};

}  // namespace nn
