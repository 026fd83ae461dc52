#include "nn/ops/sru_scan.h"

#include "nn/base/cuda.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Contiguous arguments. dropout and steps may be undefined.
struct Arguments {
  Tensor gates, x, start, forget, highway, forget_bias, highway_bias, dropout, steps;

  template <class Float> SruInputs<Float> inputs() const {
    const auto data = [](const Tensor& t) { return t.const_data_ptr<Float>(); };
    return {x.size(0), x.size(1), x.size(2), data(gates), data(x), data(start),
        dropout.defined() ? data(dropout) : nullptr, data(forget), data(highway), data(forget_bias),
        data(highway_bias), steps.defined() ? steps.const_data_ptr<std::int64_t>() : nullptr};
  }
};

// Autograd functions take no undefined tensors; empty tensors replace them.
Tensor or_empty(const Tensor& t) { return t.defined() ? t : torch::empty({0}); }
Tensor if_any(const Tensor& t) { return t.numel() > 0 ? t : Tensor(); }

// Calls f(begin, end) for ranges of the kernel's pieces in all threads.
template <class F> void each_piece(const Tensor& x, const F& f) {
  at::parallel_for(0, sru_pieces(x.size(0), x.size(2)), 1, f);
}

struct Results {
  Tensor cells, h, last;

  template <class Float> SruResults<Float> pointers() const {
    return {cells.data_ptr<Float>(), h.data_ptr<Float>(), last.data_ptr<Float>()};
  }
};

template <class Float> void forward_of(const Arguments& a, const Results& r) {
  const auto in = a.inputs<Float>();
  const auto out = r.pointers<Float>();
  each_piece(
      a.x, [&](std::int64_t begin, std::int64_t end) { sru_forward_cpu(in, out, begin, end); });
}

struct Gradients {
  Tensor d_h, d_last, d_gates, d_x, d_start, d_weights;

  template <class Float> SruGradients<Float> pointers() const {
    return {d_h.const_data_ptr<Float>(),
        d_last.defined() ? d_last.const_data_ptr<Float>() : nullptr, d_gates.data_ptr<Float>(),
        d_x.data_ptr<Float>(), d_start.data_ptr<Float>(), d_weights.data_ptr<Float>()};
  }
};

template <class Float>
void backward_of(const Arguments& a, const Tensor& cells, const Gradients& g) {
  const auto in = a.inputs<Float>();
  const Float* const kept = cells.const_data_ptr<Float>();
  const auto out = g.pointers<Float>();
  each_piece(a.x,
      [&](std::int64_t begin, std::int64_t end) { sru_backward_cpu(in, kept, out, begin, end); });
}

class SruScan : public torch::autograd::Function<SruScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& x,
      const Tensor& start, const Tensor& forget, const Tensor& highway, const Tensor& forget_bias,
      const Tensor& highway_bias, const Tensor& dropout, const Tensor& steps) {
    const Arguments a{gates, x, start, forget, highway, forget_bias, highway_bias, if_any(dropout),
        if_any(steps)};
    // Steps after a row's last step are not computed.
    const Results r{torch::empty_like(x), a.steps.defined() ? x.clone() : torch::empty_like(x),
        torch::empty_like(start)};
    if (const auto* const cuda = cuda_kernels(x))
      check_launch(
          cuda->sru_forward(a.inputs<float>(), r.pointers<float>(), cuda_stream(x)), "sru_forward");
    else if (x.scalar_type() == torch::kFloat64) forward_of<double>(a, r);
    else forward_of<float>(a, r);
    context->save_for_backward(
        {gates, x, start, forget, highway, forget_bias, highway_bias, dropout, steps});
    context->saved_data["cells"] = r.cells;
    return {r.h, r.last};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto s = context->get_saved_variables();
    const Arguments a{s[0], s[1], s[2], s[3], s[4], s[5], s[6], if_any(s[7]), if_any(s[8])};
    const Tensor cells = context->saved_data["cells"].toTensor();
    const auto make = [&](const Tensor& like) {
      return a.steps.defined() ? torch::zeros_like(like) : torch::empty_like(like);
    };
    const Gradients g{gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(a.x),
        gradients[1].defined() ? gradients[1].contiguous() : Tensor(), make(a.gates), make(a.x),
        torch::empty_like(a.start), torch::empty({a.x.size(0), 4, a.x.size(2)}, a.x.options())};
    if (const auto* const cuda = cuda_kernels(a.x))
      check_launch(cuda->sru_backward(a.inputs<float>(), cells.const_data_ptr<float>(),
                       g.pointers<float>(), cuda_stream(a.x)),
          "sru_backward");
    else if (a.x.scalar_type() == torch::kFloat64) backward_of<double>(a, cells, g);
    else backward_of<float>(a, cells, g);
    context->saved_data.erase("cells");
    const auto weights = g.d_weights.sum(0);
    return {g.d_gates, g.d_x, g.d_start, weights[0], weights[1], weights[2], weights[3], Tensor(),
        Tensor()};
  }
};

}  // namespace

SruOutput sru_scan(const Tensor& gates, const Tensor& x, const Tensor& start,
    const SruWeights& weights, const Tensor& dropout, const Tensor& steps) {
  const auto type = x.scalar_type();
  const bool kernel = in_host_memory(x) ? type == torch::kFloat32 || type == torch::kFloat64
                                        : cuda_kernels(x) != nullptr;
  if (!kernel || gates.scalar_type() != type)
    return sru_scan_plain(gates, x, start, weights, dropout, steps);
  const auto out = SruScan::apply(gates.contiguous(), x.contiguous(), start.contiguous(),
      weights.forget, weights.highway, weights.forget_bias, weights.highway_bias, or_empty(dropout),
      or_empty(steps.defined() ? upload(steps, x.device()) : steps));
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
      const auto on = upload((steps > t).unsqueeze(1), x.device());
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
