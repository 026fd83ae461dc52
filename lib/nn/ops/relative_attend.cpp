#include "nn/ops/relative_attend.h"

#include "nn/kernels/relative_attention_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Returns one head (n, width) of one row of a tensor (rows, n, heads, width) with data `data`.
template <class Float>
MatrixOf<Float> head_at(Float* data, const Tensor& t, std::int64_t row, std::int64_t head) {
  return {data + row * t.stride(0) + head * t.size(-1), t.size(1), t.size(-1), t.stride(1)};
}
Matrix in_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at(t.const_data_ptr<float>(), t, row, head);
}
MatrixOut out_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at(t.data_ptr<float>(), t, row, head);
}

RelativeInputs inputs_of(const Tensor& content, const Tensor& position, const Tensor& kv,
                         const Tensor& r, std::int64_t row, std::int64_t head) {
  return {in_head(content, row, head), in_head(position, row, head),
          in_head(kv.select(2, 0), row, head), in_head(kv.select(2, 1), row, head),
          in_head(r.unsqueeze(0), 0, head)};
}

// Options common to all heads.
struct InBlocksOptions {
  std::int64_t before;
  double scale, dropout;
  std::uint64_t seed;
};

// Calls f(row, head, kernel) for all heads of all rows.
template <class F>
void each_head(const Tensor& content, const Tensor& kv, const Tensor& first,
               const InBlocksOptions& options, F f) {
  const auto heads = content.size(2);
  const RelativeShape shape{content.size(1),
                            kv.size(1),
                            content.size(3),
                            0,
                            options.before,
                            static_cast<float>(options.scale),
                            DropoutStream(options.dropout, options.seed)};
  const auto* const begins = first.numel() > 0 ? first.const_data_ptr<std::int64_t>() : nullptr;
  at::parallel_for(0, content.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto own = shape;
      own.first = begins == nullptr ? 0 : begins[i / heads];
      own.head = static_cast<std::uint64_t>(i);
      RelativeHead kernel(own);
      f(i / heads, i % heads, kernel);
    }
  });
}

class InBlocks : public torch::autograd::Function<InBlocks> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& content, const Tensor& position,
                        const Tensor& kv, const Tensor& r, const Tensor& first,
                        const InBlocksOptions& options) {
    const auto rows = content.size(0), steps = content.size(1), heads = content.size(2);
    const Tensor out = torch::empty_like(content);
    const Tensor log_sums = torch::empty({rows, heads, steps}, content.options());
    each_head(content, kv, first, options,
              [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
                kernel.forward(inputs_of(content, position, kv, r, row, head),
                               out_head(out, row, head),
                               log_sums.data_ptr<float>() + (row * heads + head) * steps);
              });
    context->save_for_backward({content, position, kv, r, first, out});
    context->saved_data["log_sums"] = log_sums;
    context->saved_data["before"] = options.before;
    context->saved_data["reals"] = std::vector<double>{options.scale, options.dropout};
    context->saved_data["seed"] = static_cast<std::int64_t>(options.seed);
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
    // One copy per row; the copies are added in the order of rows.
    const Tensor d_r = torch::empty({kv.size(0), r.size(0), r.size(1), r.size(2)}, r.options());
    const auto reals = context->saved_data["reals"].toDoubleVector();
    const InBlocksOptions options{context->saved_data["before"].toInt(), reals[0], reals[1],
                                  static_cast<std::uint64_t>(context->saved_data["seed"].toInt())};
    each_head(content, kv, first, options,
              [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
                kernel.backward(inputs_of(content, position, kv, r, row, head),
                                log_sums.const_data_ptr<float>() + (row * heads + head) * steps,
                                {in_head(d_out, row, head), in_head(s[5], row, head),
                                 out_head(d_content, row, head), out_head(d_position, row, head),
                                 out_head(d_kv.select(2, 0), row, head),
                                 out_head(d_kv.select(2, 1), row, head), out_head(d_r, row, head)});
              });
    context->saved_data.erase("log_sums");
    return {d_content, d_position, d_kv, d_r.sum(0), Tensor(), Tensor()};
  }
};

}  // namespace

torch::Tensor relative_attend_blocks(const torch::Tensor& content, const torch::Tensor& position,
                                     const torch::Tensor& kv, const torch::Tensor& r,
                                     const torch::Tensor& first, std::int64_t before, double scale,
                                     double dropout, std::uint64_t seed) {
  return InBlocks::apply(content.contiguous(), position.contiguous(), kv.contiguous(),
                         r.contiguous(), first.defined() ? first : torch::empty({0}),
                         InBlocksOptions{before, scale, dropout, seed});
}

}  // namespace nn
