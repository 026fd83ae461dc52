#pragma once
// Attention of a decoder over what an encoder made of a source.

#include <memory>
#include <string>

#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/torch.h"

namespace nn {

/// Keys and values of a source, (B, heads, S, width) each.
struct SourceEntries {
  torch::Tensor keys, values;
};

/// softmax(q k^T / sqrt(width)) v with q = c_q(x) and keys and values out of c_kv(source)
/// (Vaswani et al. 2017, section 3.2.3). Biases are those of the other matrices.
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout);
  /// source (B, S, d).
  SourceEntries entries(const torch::Tensor& source) const;
  /// x (B, T, d) -> (B, T, d). `sight` hides padding; `present` (B, 1, 1), 0 or 1, in the type of
  /// x: a row without a source gets 0.
  torch::Tensor forward(const torch::Tensor& x, const SourceEntries& entries, const Sight& sight,
                        const torch::Tensor& present);

 private:
  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> c_q_, c_kv_, c_proj_;
};

}  // namespace nn
