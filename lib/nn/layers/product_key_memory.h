#pragma once
// A large table of values, of which a hidden vector reads a few rows: the memory layer of Lample et
// al. 2019, "Large Memory Layers with Product Keys", with the gate of Berges et al. 2024, "Memory
// Layers at Scale" (Memory+).
//
// With n half keys there are n^2 values. Value i n + j has the key (K1_i, K2_j). For each head h:
//
//  q = RMSNorm(x W_h), cut into halves q1, q2
//  I = the k best i by K1_i . q1,  J = the k best j by K2_j . q2
//  P = the k best pairs of I x J by K1_i . q1 + K2_j . q2, which are the k best of all n^2
//  w = softmax over P of these scores
//
//  y = sum over heads, over P of w_p values_p
//  gated: (y * silu(x W_gate)) W_out;  else y
//
// Each head has its own keys. All heads share the values; layers with a common pool share them too.

#include "nn/layers/layers.h"

namespace nn {

struct ProductKeyShape {
  std::int64_t d;  ///< width of inputs and outputs
  std::int64_t heads;
  std::int64_t keys;   ///< n, the number of half keys per half
  std::int64_t top_k;  ///< values that a head reads, at most n
  std::int64_t d_key;  ///< width of a whole key, even
  bool gated;
};

/// The table of values (n^2, d), initialised from normal(0, d^-0.5).
class ValuePool : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit ValuePool(const ProductKeyShape& shape);
  void first_values() override;
  torch::Tensor values;
};

class ProductKeyMemory : public TokenNetwork, public OwnFirstValues {
 public:
  /// `pool` is registered as a module elsewhere. If it is null, the layer registers its own,
  /// "pool".
  explicit ProductKeyMemory(
      const ProductKeyShape& shape, std::shared_ptr<ValuePool> pool = nullptr);
  /// Maps x (..., d) to the same shape.
  torch::Tensor forward(const torch::Tensor& x) const override;
  /// Draws keys uniformly from +-(width of half a key)^-0.5.
  void first_values() override;

 private:
  ProductKeyShape shape_;
  std::shared_ptr<ValuePool> pool_;
  torch::Tensor keys_;  // (heads, 2, n, d_key / 2)
  std::shared_ptr<Linear> c_q_, c_gate_, c_proj_;
  std::shared_ptr<LayerNorm> norm_q_;
};

}  // namespace nn
