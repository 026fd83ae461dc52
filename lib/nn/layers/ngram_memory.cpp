#include "nn/layers/ngram_memory.h"

#include "nn/base/pages.h"
#include "nn/base/upload.h"
#include "nn/ops/gathered_sum.h"
#include "nn/ops/swish_convolution.h"

namespace nn {
namespace {

constexpr std::int64_t kBefore = 2;  // tokens of a triple before its last token

/// Returns output number `counter` of SplitMix64 seeded with 0, with its lowest bit set.
std::uint64_t multiplier(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (z ^ (z >> 31)) | 1;
}

/// Returns (heads) int64 with the bits of the multipliers of the i-th newest token.
torch::Tensor multipliers(const NgramShape& shape, std::int64_t n, std::int64_t i) {
  auto out = torch::empty({shape.heads}, torch::kInt64);
  auto* const to = out.data_ptr<std::int64_t>();
  for (std::int64_t h = 0; h < shape.heads; ++h)
    to[h] = std::bit_cast<std::int64_t>(
        multiplier(static_cast<std::uint64_t>(((4 * shape.layer + n) * 1024 + h) * 4 + i)));
  return out;
}

}  // namespace

ShortConvolution::ShortConvolution(std::int64_t width, std::int64_t taps, std::int64_t apart,
    bool first_zero, bool bias, bool swish)
    : apart_(apart), first_zero_(first_zero), swish_(swish) {
  if (taps > 1) weight_ = register_parameter("weight", blank({width, taps}));
  if (taps > 1 && bias) bias_ = register_parameter("bias", blank({width}));
}

void ShortConvolution::first_values() {
  if (!weight_.defined()) return;
  if (first_zero_) {
    weight_.zero_();
    return;
  }
  const auto bound = 1 / std::sqrt(static_cast<double>(weight_.size(1)));
  weight_.uniform_(-bound, bound);
}

torch::Tensor ShortConvolution::forward(
    const torch::Tensor& x, torch::Tensor& past, const torch::Tensor& count) const {
  if (!weight_.defined()) return swish_ ? torch::silu(x) : x;
  const auto rows = x.size(0), steps = x.size(1), width = x.size(2),
             kept = (weight_.size(1) - 1) * apart_;
  if (!past.defined()) past = torch::zeros({rows, kept, width}, x.options().requires_grad(false));
  // A dilated kernel is a dense kernel with zeros between its taps.
  const auto weight = apart_ == 1 ? weight_
                                  : torch::constant_pad_nd(weight_.unsqueeze(2), {0, apart_ - 1})
                                        .flatten(1)
                                        .narrow(1, 0, kept + 1);
  const auto y = swish_convolution(x, past, weight, bias_, swish_);
  const auto all = [&] { return torch::cat({past.to(x.scalar_type()), x}, 1); };
  if (count.defined()) {
    const auto at = upload(count.unsqueeze(1) + torch::arange(kept, count.options()), x.device());
    past = all().gather(1, at.unsqueeze(2).expand({rows, kept, width}));
  } else {
    past = steps < kept ? all().narrow(1, steps, kept).clone()
                        : x.narrow(1, steps - kept, kept).clone();
  }
  return y;
}

NgramCall::NgramCall(const Batch& batch, State* state) : RealFirst(batch), state_(state) {
  const auto ids = packed_ids(batch) + 1;
  const bool begun = state != nullptr && state->has("ngram.tokens");
  const auto before = begun ? state->tensors["ngram.tokens"].to(ids.device())
                            : torch::zeros({ids.size(0), kBefore}, ids.options());
  tokens_ = torch::cat({before, ids}, 1);
  if (state == nullptr) return;
  const auto newest = upload(count().unsqueeze(1) + torch::arange(kBefore), ids.device());
  state->tensors["ngram.tokens"] = tokens_.gather(1, newest);
}

torch::Tensor& NgramCall::steps(const std::string& name) {
  if (state_ != nullptr) return state_->tensors[name + ".steps"];
  return unkept_ = torch::Tensor();
}

torch::Tensor ngram_rows(const torch::Tensor& tokens, const NgramShape& shape) {
  constexpr std::int64_t kLow = 0xFFFFFFFF, kPositive = 0x7FFFFFFFFFFFFFFF;
  const auto steps = tokens.size(1) - kBefore;
  std::vector<torch::Tensor> rows;
  for (const std::int64_t n : {2, 3}) {
    torch::Tensor g;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto term = tokens.narrow(1, kBefore - i, steps).unsqueeze(2) *
                        upload(multipliers(shape, n, i), tokens.device());
      g = i == 0 ? term : g.bitwise_xor(term);
    }
    const auto high = g.bitwise_right_shift(32).bitwise_and(kLow);
    rows.push_back(g.bitwise_xor(high).bitwise_and(kPositive).remainder(shape.rows));
  }
  return torch::cat(rows, 2);
}

NgramMemory::NgramMemory(const NgramShape& shape) : shape_(shape) {
  constexpr double kEpsilon = 1e-6;
  const auto norm = [&](const char* name) {
    return register_module(
        name, std::make_shared<LayerNorm>(shape.d, kEpsilon, /*bias=*/false, NormKind::rms));
  };
  const auto matrix = [&](const char* name) {
    return register_module(name, std::make_shared<Linear>(2 * shape.width, shape.d, false));
  };
  tables_ = register_parameter(
      "tables", blank({2 * shape.heads * shape.rows, shape.width / shape.heads}));
  c_key_ = matrix("c_key"), c_value_ = matrix("c_value");
  norm_q_ = norm("norm_q"), norm_k_ = norm("norm_k"), norm_v_ = norm("norm_v");
  convolution_ = register_module("convolution",
      std::make_shared<ShortConvolution>(shape.d, kNgramTaps, kNgramApart, /*first_zero=*/true));
}

void NgramMemory::first_values() {
  tables_.normal_(0, 1 / std::sqrt(static_cast<double>(shape_.width)));
}

void NgramMemory::stay_on_disk(const torch::Tensor& tables) {
  tables_.set_data(tables);
  expect_any_row(tables);
  on_disk_ = true;
}

torch::Tensor NgramMemory::rows_of(const NgramCall& call) const {
  const auto tables = torch::arange(2 * shape_.heads, call.tokens().options()) * shape_.rows;
  return ngram_rows(call.tokens(), shape_) + tables;
}

void NgramMemory::ask_for_rows(const NgramCall& call) const {
  if (on_disk_) read_rows_ahead(tables_, rows_of(call));
}

torch::Tensor NgramMemory::forward(
    const torch::Tensor& x, NgramCall& call, const std::string& name) const {
  const auto rows = rows_of(call).reshape({-1, 1});
  const auto e =
      gathered_sum(tables_, rows, torch::ones(rows.sizes(), tables_.options().requires_grad(false)))
          .view({x.size(0), x.size(1), 2 * shape_.width});
  const auto score =
      (norm_q_->forward(call.pack(x)) * norm_k_->forward(c_key_->forward(e))).sum(-1, true);
  const auto gate = torch::sigmoid(score / std::sqrt(static_cast<double>(shape_.d)));
  const auto v = gate * c_value_->forward(e);
  const auto count = call.dense() ? torch::Tensor() : call.count();
  const auto y = convolution_->forward(norm_v_->forward(v), call.steps(name), count) + v;
  return call.unpack(y);
}

}  // namespace nn
