#include "nn/sru_scan.h"

#include <algorithm>

#include "nn/sru_scan_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Contiguous arguments, by row.
struct Arguments {
  Tensor gates, x, start, forget, highway, forget_bias, highway_bias, dropout, steps;

  std::int64_t rows() const { return x.size(0); }
  std::int64_t width() const { return x.size(2); }
  std::int64_t blocks() const { return (width() + kSruChannels - 1) / kSruChannels; }

  template <class Float>
  SruRow<Float> row(std::int64_t b) const {
    const auto at = [b](const Tensor& t) { return t.const_data_ptr<Float>() + b * t.stride(0); };
    const auto n = steps.defined() ? steps.const_data_ptr<std::int64_t>()[b] : x.size(1);
    return {n,
            width(),
            at(gates),
            at(x),
            at(start),
            dropout.defined() ? at(dropout) : nullptr,
            forget.const_data_ptr<Float>(),
            highway.const_data_ptr<Float>(),
            forget_bias.const_data_ptr<Float>(),
            highway_bias.const_data_ptr<Float>()};
  }
};

// An autograd function takes no undefined tensors; these stand for them.
Tensor or_empty(const Tensor& t) { return t.defined() ? t : torch::empty({0}); }
Tensor if_any(const Tensor& t) { return t.numel() > 0 ? t : Tensor(); }

// f(row, begin, end) for every row and range of channels.
template <class F>
void each_range(const Arguments& a, F f) {
  at::parallel_for(0, a.rows() * a.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto channel = i % a.blocks() * kSruChannels;
      f(i / a.blocks(), channel, std::min(channel + kSruChannels, a.width()));
    }
  });
}

template <class Float>
Tensor forward_of(const Arguments& a, Tensor& cells, Tensor& h) {
  Tensor last = a.start.clone();
  each_range(a, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
    const auto row = a.row<Float>(b);
    Float* const c = cells.data_ptr<Float>() + b * cells.stride(0);
    Float* const out = h.data_ptr<Float>() + b * h.stride(0);
    sru_forward(row, begin, end, c, out);
    if (row.steps == 0) return;
    const Float* const end_cell = c + (row.steps - 1) * row.d;
    std::copy(end_cell + begin, end_cell + end, last.data_ptr<Float>() + b * row.d + begin);
  });
  return last;
}

struct Gradients {
  Tensor d_h, d_last, d_gates, d_x, d_start, d_weights;
};

template <class Float>
void backward_of(const Arguments& a, const Tensor& cells, const Gradients& g) {
  each_range(a, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
    const auto at = [b](const Tensor& t) { return t.data_ptr<Float>() + b * t.stride(0); };
    sru_backward(a.row<Float>(b), begin, end, at(cells),
                 SruGradients<Float>{at(g.d_h), g.d_last.defined() ? at(g.d_last) : nullptr,
                                     at(g.d_gates), at(g.d_x), at(g.d_start), at(g.d_weights)});
  });
}

class SruScan : public torch::autograd::Function<SruScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& x,
                               const Tensor& start, const Tensor& forget, const Tensor& highway,
                               const Tensor& forget_bias, const Tensor& highway_bias,
                               const Tensor& dropout, const Tensor& steps) {
    const Arguments a{gates,        x,           start,        forget,
                      highway,      forget_bias, highway_bias, if_any(dropout),
                      if_any(steps)};
    // Steps behind a row's last one are not computed.
    Tensor cells = torch::empty_like(x), h = a.steps.defined() ? x.clone() : torch::empty_like(x);
    const Tensor last = x.scalar_type() == torch::kFloat64 ? forward_of<double>(a, cells, h)
                                                           : forward_of<float>(a, cells, h);
    context->save_for_backward(
        {gates, x, start, forget, highway, forget_bias, highway_bias, dropout, steps});
    context->saved_data["cells"] = cells;
    return {h, last};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto s = context->get_saved_variables();
    const Arguments a{s[0], s[1], s[2], s[3], s[4], s[5], s[6], if_any(s[7]), if_any(s[8])};
    const Tensor cells = context->saved_data["cells"].toTensor();
    const auto make = [&](const Tensor& like) {
      return a.steps.defined() ? torch::zeros_like(like) : torch::empty_like(like);
    };
    const Gradients g{gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(a.x),
                      gradients[1].defined() ? gradients[1].contiguous() : Tensor(),
                      make(a.gates),
                      make(a.x),
                      torch::empty_like(a.start),
                      torch::empty({a.rows(), 4, a.width()}, a.x.options())};
    if (a.x.scalar_type() == torch::kFloat64)
      backward_of<double>(a, cells, g);
    else
      backward_of<float>(a, cells, g);
    context->saved_data.erase("cells");
    const auto weights = g.d_weights.sum(0);
    return {g.d_gates,  g.d_x,      g.d_start, weights[0], weights[1],
            weights[2], weights[3], Tensor(),  Tensor()};
  }
};

}  // namespace

SruOutput sru_scan(const Tensor& gates, const Tensor& x, const Tensor& start,
                   const SruWeights& weights, const Tensor& dropout, const Tensor& steps) {
  const auto type = x.scalar_type();
  const bool fits = x.is_cpu() && (type == torch::kFloat32 || type == torch::kFloat64) &&
                    gates.scalar_type() == type;
  if (!fits) return sru_scan_plain(gates, x, start, weights, dropout, steps);
  const auto out = SruScan::apply(gates.contiguous(), x.contiguous(), start.contiguous(),
                                  weights.forget, weights.highway, weights.forget_bias,
                                  weights.highway_bias, or_empty(dropout), or_empty(steps));
  return {out[0], out[1]};
}

SruOutput sru_scan_plain(const Tensor& gates, const Tensor& x, const Tensor& start,
                         const SruWeights& w, const Tensor& dropout, const Tensor& steps) {
  const auto u = gates.chunk(3, 2);
  std::vector<Tensor> h;
  Tensor c = start;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const auto f = torch::sigmoid(u[1].select(1, t) + w.forget * c + w.forget_bias);
    auto r = torch::sigmoid(u[2].select(1, t) + w.highway * c + w.highway_bias);
    if (dropout.defined()) r = r * dropout;
    const auto next = f * c + (1 - f) * u[0].select(1, t), in = x.select(1, t);
    auto out = in + r * (next - in);
    if (steps.defined()) {
      const auto on = (steps > t).unsqueeze(1).to(x.device());
      c = torch::where(on, next, c);
      h.push_back(torch::where(on, out, in.detach()));
    } else {
      c = next;
      h.push_back(out);
    }
  }
  return {torch::stack(h, 1), c};
}

}  // namespace nn
