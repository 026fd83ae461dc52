#include "nn/relative_attention.h"

#include <cmath>

#include "nn/attention.h"
#include "nn/relative_attention_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One head of one row of (rows, n, heads, width), at its data.
template <class Rows, class Float>
Rows head_at(Float* data, const Tensor& t, std::int64_t row, std::int64_t head) {
  return {data + row * t.stride(0) + head * t.size(-1), t.stride(1)};
}
HeadIn in_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at<HeadIn>(t.const_data_ptr<float>(), t, row, head);
}
HeadOut out_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at<HeadOut>(t.data_ptr<float>(), t, row, head);
}

RelativeInputs inputs_of(const Tensor& content, const Tensor& position, const Tensor& kv,
                         const Tensor& r, std::int64_t row, std::int64_t head) {
  return {in_head(content, row, head), in_head(position, row, head),
          in_head(kv.select(2, 0), row, head), in_head(kv.select(2, 1), row, head),
          HeadIn{r.const_data_ptr<float>() + head * r.size(2), r.stride(0)}};
}

// f(row, head, kernel) for all heads of all rows.
template <class F>
void each_head(const Tensor& content, const Tensor& kv, const Tensor& first, std::int64_t before,
               double scale, F f) {
  const auto heads = content.size(2);
  RelativeShape shape{content.size(1),          kv.size(1), content.size(3), 0, before,
                      static_cast<float>(scale)};
  const auto* const begins = first.numel() > 0 ? first.const_data_ptr<std::int64_t>() : nullptr;
  at::parallel_for(0, content.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto own = shape;
      own.first = begins == nullptr ? 0 : begins[i / heads];
      RelativeHead kernel(own);
      f(i / heads, i % heads, kernel);
    }
  });
}

class InBlocks : public torch::autograd::Function<InBlocks> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& content, const Tensor& position,
                        const Tensor& kv, const Tensor& r, const Tensor& first, std::int64_t before,
                        double scale) {
    const auto rows = content.size(0), steps = content.size(1), heads = content.size(2);
    const Tensor out = torch::empty_like(content);
    const Tensor log_sums = torch::empty({rows, heads, steps}, content.options());
    each_head(content, kv, first, before, scale,
              [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
                kernel.forward(inputs_of(content, position, kv, r, row, head),
                               out_head(out, row, head),
                               log_sums.data_ptr<float>() + (row * heads + head) * steps);
              });
    context->save_for_backward({content, position, kv, r, first, out});
    context->saved_data["log_sums"] = log_sums;
    context->saved_data["before"] = before;
    context->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto s = context->get_saved_variables();
    const Tensor &content = s[0], &position = s[1], &kv = s[2], &r = s[3], &first = s[4];
    const Tensor log_sums = context->saved_data["log_sums"].toTensor();
    const Tensor d_out = gradients[0].contiguous();
    const auto heads = content.size(2), steps = content.size(1);
    const Tensor d_content = torch::empty_like(content), d_position = torch::empty_like(content),
                 d_kv = torch::empty_like(kv);
    // A copy for each row, added up in their order.
    const Tensor d_r = torch::empty({kv.size(0), r.size(0), r.size(1), r.size(2)}, r.options());
    each_head(content, kv, first, context->saved_data["before"].toInt(),
              context->saved_data["scale"].toDouble(),
              [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
                kernel.backward(inputs_of(content, position, kv, r, row, head),
                                log_sums.const_data_ptr<float>() + (row * heads + head) * steps,
                                {in_head(d_out, row, head), in_head(s[5], row, head),
                                 out_head(d_content, row, head), out_head(d_position, row, head),
                                 out_head(d_kv.select(2, 0), row, head),
                                 out_head(d_kv.select(2, 1), row, head), out_head(d_r, row, head)});
              });
    context->saved_data.erase("log_sums");
    return {d_content, d_position, d_kv, d_r.sum(0), Tensor(), Tensor(), Tensor()};
  }
};

Tensor attend_whole(const Tensor& content, const Tensor& position, const Tensor& kv,
                    const Tensor& r, const KeySight& sight, double scale, double dropout) {
  const auto rows = content.size(0), steps = content.size(1), heads = content.size(2),
             slots = kv.size(1);
  auto scores = torch::matmul(content.transpose(1, 2), kv.select(2, 0).permute({0, 2, 3, 1}));
  // Products with r padded to S + 1 columns: read from column T - 1 on in rows of S, row i begins i
  // columns earlier, which is the relative shift. What lies behind a query's own slot is hidden.
  const auto padded = torch::constant_pad_nd(r, {0, 0, 0, 0, 0, 1});
  const auto products = torch::matmul(position.transpose(1, 2), padded.permute({1, 2, 0}));
  const auto shifted = products.reshape({rows, heads, steps * (slots + 1)})
                           .narrow(2, steps - 1, steps * slots)
                           .view({rows, heads, steps, slots});
  scores = (scores + shifted) * scale;
  scores = scores.masked_fill(sight.hidden(steps, slots).to(scores.device()), kHidden);
  const auto weights = dropped(scores.softmax(-1), dropout, dropout > 0);
  return torch::matmul(weights, kv.select(2, 1).transpose(1, 2)).transpose(1, 2);
}

}  // namespace

torch::Tensor distance_vectors(std::int64_t n, std::int64_t clamp, std::int64_t d) {
  auto distance = torch::arange(n - 1, -1, -1, torch::kFloat64);
  if (clamp > 0) distance.clamp_max_(static_cast<double>(clamp));
  const auto frequency = torch::arange(d / 2, torch::kFloat64)
                             .mul(-2 * std::log(10000.0) / static_cast<double>(d))
                             .exp();
  const auto angle = distance.unsqueeze(1) * frequency;
  const auto table = torch::cat({angle.sin(), angle.cos()}, 1);
  return d % 2 == 0 ? table : torch::constant_pad_nd(table, {0, 1});
}

torch::Tensor relative_attend(const torch::Tensor& content, const torch::Tensor& position,
                              const torch::Tensor& kv, const torch::Tensor& r,
                              const KeySight& sight, double dropout) {
  const double scale = 1 / std::sqrt(static_cast<double>(content.size(3)));
  const bool fits = content.is_cpu() && content.scalar_type() == torch::kFloat32 &&
                    kv.scalar_type() == torch::kFloat32 && dropout == 0;
  if (fits)
    return InBlocks::apply(content.contiguous(), position.contiguous(), kv.contiguous(),
                           r.contiguous(), sight.first.defined() ? sight.first : torch::empty({0}),
                           sight.before, scale);
  return attend_whole(content, position, kv, r, sight, scale, dropout);
}

PositionBiases::PositionBiases(std::int64_t heads, std::int64_t width) {
  content = register_parameter("content", blank({heads, width}));
  position = register_parameter("position", blank({heads, width}));
}

RelativeAttention::RelativeAttention(std::int64_t d_model, std::int64_t heads, double dropout)
    : heads_(heads), dropout_(dropout) {
  c_attn_ = register_module("c_attn", std::make_shared<Linear>(d_model, 3 * d_model, false));
  c_position_ = register_module("c_position", std::make_shared<Linear>(d_model, d_model, false));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_model, d_model, false));
}

torch::Tensor RelativeAttention::keys_values(const torch::Tensor& x) const {
  const auto d = x.size(2);
  return torch::linear(x, c_attn_->weight.narrow(0, d, 2 * d));
}

torch::Tensor RelativeAttention::positions(const torch::Tensor& distances) const {
  const auto d = distances.size(1);
  return c_position_->forward(distances).view({distances.size(0), heads_, d / heads_});
}

torch::Tensor RelativeAttention::forward(const torch::Tensor& x, const torch::Tensor& keys_values,
                                         const torch::Tensor& positions,
                                         const PositionBiases& biases, const KeySight& sight) {
  const auto rows = x.size(0), queries = x.size(1), d = x.size(2), width = d / heads_;
  const auto q =
      torch::linear(x, c_attn_->weight.narrow(0, 0, d)).view({rows, queries, heads_, width});
  const auto kv = keys_values.view({rows, keys_values.size(1), 2, heads_, width});
  const auto out = relative_attend(q + biases.content, q + biases.position, kv, positions, sight,
                                   is_training() ? dropout_ : 0.0);
  return c_proj_->forward(out.reshape({rows, queries, d}));
}

}  // namespace nn
