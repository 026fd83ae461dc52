#include "nn/layers/experts.h"

#include <cmath>
#include <tuple>
#include <vector>

namespace nn {
namespace {

// Splits a stacked tensor into its parts. unbind's gradient is one stack of all parts' gradients.
std::vector<torch::Tensor> parts_of(const torch::Tensor& stacked, std::int64_t count) {
  if (!stacked.defined()) return std::vector<torch::Tensor>(static_cast<std::size_t>(count));
  return stacked.unflatten(0, {count, -1}).unbind(0);
}

}  // namespace

Experts::Experts(const ExpertShape& shape, const Inner& inner) : shape_(shape), inner_(inner) {
  const auto matrix = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  };
  router_ = matrix("router", shape.d, shape.count, false);
  c_fc_ = matrix("c_fc", shape.d, shape.count * inner.wide(shape.width), shape.bias);
  c_proj_ = matrix("c_proj", shape.width, shape.count * shape.d, shape.bias);
}

void Experts::first_values() {
  for (const auto* matrix : {router_.get(), c_fc_.get(), c_proj_.get()}) {
    auto weight = matrix->weight;
    weight.normal_(0, 1 / std::sqrt(static_cast<double>(weight.size(1))));
  }
}

torch::Tensor Experts::forward(const torch::Tensor& x) const {
  const auto k = shape_.per_token;
  const auto rows = x.reshape({-1, shape_.d});  // (T, d)
  const auto scores = router_->forward(rows);   // (T, experts)
  const bool wide = scores.scalar_type() == torch::kFloat64;
  const auto p = torch::softmax(scores, -1, wide ? torch::kFloat64 : torch::kFloat32);
  auto [weight, chosen] = p.topk(k, -1);  // (T, k)
  if (shape_.normalised) weight = weight / weight.sum(-1, /*keepdim=*/true);
  // The T k pairs of a token and an expert, sorted by expert, so that an expert reads its tokens at
  // once.
  const auto pairs = chosen.flatten();
  const auto order = pairs.argsort(/*stable=*/true, /*dim=*/0);
  const auto place = torch::empty_like(order).scatter_(
      0, order, torch::arange(order.size(0), order.options()));  // position of each pair in `order`
  const auto counts = pairs.bincount({}, shape_.count).to(torch::kCPU);
  const auto read = rows.index_select(0, order.div(k, "floor"));  // (T k, d)
  const auto fc = parts_of(c_fc_->weight, shape_.count),
             fc_bias = parts_of(c_fc_->bias, shape_.count),
             proj = parts_of(c_proj_->weight, shape_.count),
             proj_bias = parts_of(c_proj_->bias, shape_.count);
  std::vector<torch::Tensor> given;
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < fc.size(); ++e) {
    const auto n = counts.data_ptr<std::int64_t>()[e];
    if (n == 0) continue;
    const auto inner = torch::linear(read.narrow(0, begin, n), fc[e], fc_bias[e]);
    given.push_back(torch::linear(inner_.of(inner, is_training()), proj[e], proj_bias[e]));
    begin += n;
  }
  if (given.empty()) return x;  // no tokens
  const auto by_token = torch::cat(given).index_select(0, place).view({-1, k, shape_.d});
  const auto y = (by_token * weight.to(by_token.scalar_type()).unsqueeze(-1)).sum(1);
  return y.view(x.sizes());
}

}  // namespace nn
