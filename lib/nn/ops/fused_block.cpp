#include "nn/ops/fused_block.h"

#include <ATen/autocast_mode.h>

#include "nn/base/cuda.h"

namespace nn {
namespace {

constexpr std::size_t kWeights = 12;
using WeightList = std::array<Tensor, kWeights>;

WeightList list_of(const BlockWeights& w) {
  return {w.norm1, w.norm1_bias, w.qkv, w.qkv_bias, w.project, w.project_bias, w.norm2,
      w.norm2_bias, w.expand, w.expand_bias, w.reduce, w.reduce_bias};
}

template <class Float> SequenceWeights<Float> pointers(const std::array<Float*, kWeights>& p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11]};
}

SequenceWeights<const float> pointers(const WeightList& list) {
  std::array<const float*, kWeights> p{};
  for (std::size_t i = 0; i < kWeights; ++i)
    p[i] = list[i].numel() > 0 ? list[i].const_data_ptr<float>() : nullptr;
  return pointers(p);
}

// Buffers of a batch; at() returns pointers to one sequence.
struct Saved {
  Tensor qkv, attended, log_sums, middle, hidden;
  SequenceSaved at(std::int64_t row) const {
    const auto of = [row](const Tensor& t) { return t.data_ptr<float>() + row * t.stride(0); };
    return {of(qkv), of(attended), of(log_sums), of(middle), of(hidden)};
  }
};

// Cosines and sines of a batch; at() returns pointers to one sequence. Undefined without rotary
// positions.
struct Turns {
  Tensor cos, sin;
  SequenceInput at(const Tensor& x, std::int64_t row) const {
    const auto of = [row](const Tensor& t) {
      return !t.defined() ? nullptr
                          : t.const_data_ptr<float>() + (t.size(0) > 1 ? row * t.stride(0) : 0);
    };
    return {x.const_data_ptr<float>() + row * x.stride(0), of(cos), of(sin),
        static_cast<std::uint64_t>(row)};
  }
};

// The shape as autograd saves it.
std::vector<std::int64_t> numbers_of(const SequenceShape& s) {
  return {s.heads, s.kv_heads, s.head_width, s.turned, s.inner, std::int64_t{s.gated},
      std::int64_t{s.rms}, static_cast<std::int64_t>(s.activation),
      static_cast<std::int64_t>(s.seed)};
}
SequenceShape shape_of(
    const Tensor& x, const std::vector<std::int64_t>& n, const std::vector<double>& reals) {
  return {x.size(1), x.size(2), n[0], n[1], n[2], static_cast<float>(reals[0]), n[3], n[4],
      n[5] != 0, n[6] != 0, static_cast<InnerActivation>(n[7]), static_cast<float>(reals[1]),
      static_cast<float>(reals[2]), reals[3], static_cast<std::uint64_t>(n[8])};
}

class FusedBlock : public torch::autograd::Function<FusedBlock> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x,
      at::TensorList weight_list, const SequenceShape& shape, const Turns& turns,
      bool want_ffn_input) {
    WeightList weights;
    std::copy(weight_list.begin(), weight_list.end(), weights.begin());
    const std::int64_t rows = x.size(0), t = shape.steps, d = shape.width;
    const auto make = [&](std::vector<std::int64_t> sizes) {
      return torch::empty(sizes, x.options());
    };
    const Saved saved{make({rows, t, shape.d_all()}), make({rows, t, shape.d_query()}),
        make({rows, shape.heads, t}), make({rows, t, d}), make({rows, t, shape.expanded()})};
    const Tensor y = torch::empty_like(x);
    const Tensor ffn_input = want_ffn_input ? torch::empty_like(x) : Tensor();
    const auto w = pointers(weights);
    at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      SequenceKernel kernel(shape);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * t * d;
        kernel.forward(turns.at(x, row), w, saved.at(row), y.data_ptr<float>() + at,
            want_ffn_input ? ffn_input.data_ptr<float>() + at : nullptr);
      }
    });
    variable_list keep{x};
    keep.insert(keep.end(), weights.begin(), weights.end());
    context->save_for_backward(keep);
    context->saved_data["saved"] =
        std::vector<Tensor>{saved.qkv, saved.attended, saved.log_sums, saved.middle, saved.hidden};
    if (turns.cos.defined()) context->saved_data["cos"] = turns.cos;
    if (turns.sin.defined()) context->saved_data["sin"] = turns.sin;
    context->saved_data["shape"] = numbers_of(shape);
    context->saved_data["reals"] =
        std::vector<double>{shape.scale, shape.epsilon, shape.dropout, shape.attention_dropout};
    return want_ffn_input ? variable_list{y, ffn_input} : variable_list{y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const variable_list kept = context->get_saved_variables();
    const Tensor& x = kept[0];
    WeightList weights;
    std::copy(kept.begin() + 1, kept.end(), weights.begin());
    auto& data = context->saved_data;
    const auto buffers = data["saved"].toTensorVector();
    const Saved saved{buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]};
    const auto shape = shape_of(x, data["shape"].toIntVector(), data["reals"].toDoubleVector());
    Turns turns;
    if (shape.turned > 0) turns = {data["cos"].toTensor(), data["sin"].toTensor()};
    const Tensor dy = d_out[0].defined() ? d_out[0].contiguous() : torch::zeros_like(x);
    const Tensor d_input =
        d_out.size() > 1 && d_out[1].defined() ? d_out[1].contiguous() : Tensor();
    const Tensor dx = torch::empty_like(x);

    // Each thread adds to its own gradients. They are summed in the order of the threads.
    std::array<std::int64_t, kWeights + 1> offset{};
    for (std::size_t i = 0; i < kWeights; ++i)
      offset[i + 1] = offset[i] + (weights[i].numel() + 15) / 16 * 16;
    const std::int64_t rows = x.size(0),
                       parts = std::min<std::int64_t>(at::get_num_threads(), rows);
    const std::int64_t rows_a_part = (rows + parts - 1) / parts, stride = x.size(1) * x.size(2);
    const Tensor sums = torch::zeros({parts, offset[kWeights]}, x.options());
    const auto w = pointers(weights);
    at::parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        std::array<float*, kWeights> g{};
        for (std::size_t i = 0; i < kWeights; ++i)
          g[i] = weights[i].numel() > 0 ? sums.data_ptr<float>() + part * sums.stride(0) + offset[i]
                                        : nullptr;
        SequenceKernel kernel(shape);
        for (std::int64_t row = part * rows_a_part; row < std::min(rows, (part + 1) * rows_a_part);
             ++row) {
          kernel.backward(turns.at(x, row), w, saved.at(row),
              dy.const_data_ptr<float>() + row * stride,
              d_input.defined() ? d_input.const_data_ptr<float>() + row * stride : nullptr,
              dx.data_ptr<float>() + row * stride, pointers(g));
        }
      }
    });
    context->saved_data.erase("saved");
    const Tensor total = parts == 1 ? sums[0] : sums.sum(0);
    variable_list gradients{dx};
    for (std::size_t i = 0; i < kWeights; ++i) {
      gradients.push_back(
          weights[i].numel() > 0
              ? total.slice(0, offset[i], offset[i] + weights[i].numel()).view(weights[i].sizes())
              : Tensor());
    }
    gradients.resize(gradients.size() + 3);
    return gradients;
  }
};

}  // namespace

bool fused_block_fits(const Tensor& x) {
  return in_host_memory(x) && x.scalar_type() == torch::kFloat32 && x.dim() == 3 &&
         x.is_contiguous() && x.size(0) >= at::get_num_threads() && x.size(1) > 1 &&
         !at::autocast::is_autocast_enabled(torch::kCPU);
}

BlockOutput fused_block(
    const Tensor& x, const BlockWeights& weights, const BlockShape& shape, bool want_ffn_input) {
  const Turns turns{shape.cos, shape.sin};
  const SequenceShape sequence{x.size(1), x.size(2), shape.heads.heads, shape.heads.kv_heads,
      shape.heads.width, static_cast<float>(shape.attention_scale),
      turns.cos.defined() ? turns.cos.size(-1) : 0, weights.reduce.size(1), shape.gated, shape.rms,
      shape.activation, static_cast<float>(shape.norm_epsilon),
      static_cast<float>(shape.residual_dropout), shape.attention_dropout, shape.seed};
  WeightList list = list_of(weights);
  for (Tensor& weight : list)
    if (!weight.defined()) weight = x.new_empty({0});  // no bias
  const auto out = FusedBlock::apply(
      x, at::TensorList(list.data(), list.size()), sequence, turns, want_ffn_input);
  return {out[0], want_ffn_input ? out[1] : Tensor()};
}

}  // namespace nn
