#include "nn/layers/product_key_memory.h"

#include "nn/ops/gathered_sum.h"

namespace nn {

ValuePool::ValuePool(const ProductKeyShape& shape)
    : values(register_parameter("values", blank({shape.keys * shape.keys, shape.d}))) {}

void ValuePool::first_values() {
  values.normal_(0, 1 / std::sqrt(static_cast<double>(values.size(1))));
}

ProductKeyMemory::ProductKeyMemory(const ProductKeyShape& shape, std::shared_ptr<ValuePool> pool)
    : shape_(shape), pool_(std::move(pool)) {
  constexpr double kEpsilon = 1e-6;
  const auto matrix = [&](const char* name, std::int64_t out) {
    return register_module(name, std::make_shared<Linear>(shape.d, out, /*bias=*/false));
  };
  c_q_ = matrix("c_q", shape.heads * shape.d_key);
  norm_q_ = register_module(
      "norm_q", std::make_shared<LayerNorm>(shape.d_key, kEpsilon, /*bias=*/false, NormKind::rms));
  keys_ = register_parameter("keys", blank({shape.heads, 2, shape.keys, shape.d_key / 2}));
  if (pool_ == nullptr) pool_ = register_module("pool", std::make_shared<ValuePool>(shape));
  if (!shape.gated) return;
  c_gate_ = matrix("c_gate", shape.d);
  c_proj_ = matrix("c_proj", shape.d);
}

void ProductKeyMemory::first_values() {
  const auto bound = 1 / std::sqrt(static_cast<double>(keys_.size(-1)));
  keys_.uniform_(-bound, bound);
}

torch::Tensor ProductKeyMemory::forward(const torch::Tensor& x) const {
  const auto heads = shape_.heads, k = shape_.top_k;
  const auto& values = pool_->values;
  const auto q = norm_q_->forward(c_q_->forward(x).reshape({-1, heads, shape_.d_key}))
                     .view({-1, heads, 2, shape_.d_key / 2})
                     .permute({1, 2, 0, 3});                                // (H, 2, T, d_key / 2)
  const auto halves = q.matmul(keys_.to(q.scalar_type()).transpose(2, 3));  // (heads, 2, T, n)
  const auto [score, half] = halves.topk(k, -1);                            // (heads, 2, T, k)
  const auto pairs =
      (score.select(1, 0).unsqueeze(-1) + score.select(1, 1).unsqueeze(-2)).flatten(2);
  const auto [best, pair] = pairs.topk(k, -1);  // (heads, T, k), chosen from (heads, T, k k)
  const auto first = half.select(1, 0).gather(-1, pair.div(k, "floor")),
             second = half.select(1, 1).gather(-1, pair.remainder(k));
  const auto by_token = [&](const torch::Tensor& t) {
    return t.permute({1, 0, 2}).reshape({-1, heads * k});
  };
  const auto weights = torch::softmax(best.to(values.scalar_type()), -1);
  const auto y = gathered_sum(values, by_token(first * shape_.keys + second), by_token(weights))
                     .view(x.sizes());
  return shape_.gated ? c_proj_->forward(y * torch::silu(c_gate_->forward(x))) : y;
}

}  // namespace nn
