#include "nn/layers/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include "nn/base/cuda.h"

namespace nn {

Sight make_sight(const KvCache& cache, Positions positions, std::int64_t heads, std::int64_t width,
                 const torch::TensorOptions& options, bool materialise) {
  Sight sight;
  const auto slots = cache.slots(), steps = cache.before().size(1), earlier = slots - steps;
  if (positions == Positions::rope) sight.rotation.emplace(cache.before(), width, options);
  sight.causal = cache.all_valid() && earlier == 0;
  const bool sees_all = cache.all_valid() && steps == 1;
  if (positions != Positions::alibi && (sight.causal || sees_all) && !materialise) return sight;

  const auto query = torch::arange(earlier, slots).unsqueeze(1);            // (T, 1)
  const auto own = torch::arange(slots).unsqueeze(0).eq(query);             // (T, S)
  auto visible = torch::arange(slots).unsqueeze(0).le(query).unsqueeze(0);  // (1, T, S)
  if (!cache.all_valid()) visible = (visible & cache.valid().unsqueeze(1)) | own;
  visible.unsqueeze_(1);  // (B or 1, 1, T, S)
  auto mask = torch::zeros(visible.sizes(), options.device(torch::kCPU));
  if (positions == Positions::alibi) {
    auto distance = cache.before().unsqueeze(2) - cache.position().unsqueeze(1);  // (B or 1, T, S)
    if (cache.all_valid()) distance = distance.narrow(0, 0, 1);
    mask = -alibi_slopes(heads).view({1, heads, 1, 1}) * distance.unsqueeze(1);
  }
  sight.mask = mask.masked_fill_(visible.logical_not(), kHidden).to(options);
  sight.causal = false;
  return sight;
}

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     const Sight& sight, double dropout) {
  // The CPU's fused attention has no dropout; it would take another path, with other numbers.
  if (dropout == 0 || !in_host_memory(q)) {
    std::optional<torch::Tensor> mask;
    if (sight.mask.defined()) mask = sight.mask;
    return at::scaled_dot_product_attention(q, k, v, mask, dropout, sight.causal && q.size(2) > 1);
  }
  auto scores =
      torch::matmul(q * (1 / std::sqrt(static_cast<double>(q.size(-1)))), k.transpose(-2, -1));
  if (sight.mask.defined()) scores = scores + sight.mask;
  return torch::matmul(torch::dropout(scores.softmax(-1), dropout, true), v);
}

Attention::Attention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout)
    : heads_(heads), dropout_(dropout) {
  c_attn_ = register_module("c_attn", std::make_shared<Linear>(d_model, 3 * d_model, bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_model, d_model, bias));
}

torch::Tensor Attention::forward(const torch::Tensor& x, const Sight& sight, KvCache& cache,
                                 const std::string& name) {
  const auto rows = x.size(0), steps = x.size(1), d = x.size(2);
  const auto split =
      c_attn_->forward(x).view({rows, steps, 3, heads_, d / heads_}).permute({2, 0, 3, 1, 4});
  auto q = split[0], k = split[1];  // (B, heads, T, width)
  if (sight.rotation) {
    q = sight.rotation->apply(q);
    k = sight.rotation->apply(k);
  }
  k = cache.extend(name + ".k", k);
  const auto v = cache.extend(name + ".v", split[2]);
  if (sight.watch != nullptr)
    (*sight.watch)(last_weights(q, k, sight.mask, 1 / std::sqrt(static_cast<double>(q.size(-1)))));
  const auto out = attend(q, k, v, sight, is_training() ? dropout_ : 0.0);
  return c_proj_->forward(out.transpose(1, 2).reshape({rows, steps, d}));
}

}  // namespace nn
