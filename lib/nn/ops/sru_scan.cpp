#include "nn/ops/sru_scan.h"

#include "nn/base/upload.h"
#include "nn/ops/host_loops.h"

namespace nn {
namespace {

// Contiguous arguments. dropout and steps may be undefined.
struct Arguments {
  Tensor gates, x, start, forget, highway, forget_bias, highway_bias, dropout, steps;

  template <class Float> SruInputs<Float> inputs() const {
    return {x.size(0), x.size(1), x.size(2), data_of<Float>(gates), data_of<Float>(x),
        data_of<Float>(start), data_of<Float>(dropout), data_of<Float>(forget),
        data_of<Float>(highway), data_of<Float>(forget_bias), data_of<Float>(highway_bias),
        data_of<std::int64_t>(steps)};
  }
  std::int64_t pieces() const { return sru_pieces(x.size(0), x.size(2)); }
};

// Autograd functions take no undefined tensors; empty tensors replace them.
Tensor or_empty(const Tensor& t) { return t.defined() ? t : torch::empty({0}); }
Tensor if_any(const Tensor& t) { return t.numel() > 0 ? t : Tensor(); }

class SruScan : public torch::autograd::Function<SruScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& x,
      const Tensor& start, const Tensor& forget, const Tensor& highway, const Tensor& forget_bias,
      const Tensor& highway_bias, const Tensor& dropout, const Tensor& steps) {
    const Arguments a{gates, x, start, forget, highway, forget_bias, highway_bias, if_any(dropout),
        if_any(steps)};
    // Steps after a row's last step are not computed.
    const Tensor cells = torch::empty_like(x), last = torch::empty_like(start),
                 h = a.steps.defined() ? x.clone() : torch::empty_like(x);
    const auto results = [&]<class Float>(Float) -> SruResults<Float> {
      return {cells.data_ptr<Float>(), h.data_ptr<Float>(), last.data_ptr<Float>()};
    };
    if (const auto* const cuda = cuda_kernels(x))
      check_launch(
          cuda->sru_forward(a.inputs<float>(), results(float()), cuda_stream(x)), "sru_forward");
    else
      in_threads(x, a.pieces(), [&]<class Float>(Float of, std::int64_t piece) {
        sru_forward_cpu(a.inputs<Float>(), results(of), piece);
      });
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
    const Tensor d_h = gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(a.x),
                 d_last = gradients[1].defined() ? gradients[1].contiguous() : Tensor(),
                 d_gates = make(a.gates), d_x = make(a.x), d_start = torch::empty_like(a.start),
                 d_weights = torch::empty({a.x.size(0), 4, a.x.size(2)}, a.x.options());
    const auto made = [&]<class Float>(Float) -> SruGradients<Float> {
      return {data_of<Float>(d_h), data_of<Float>(d_last), mutable_data<Float>(d_gates),
          mutable_data<Float>(d_x), mutable_data<Float>(d_start), mutable_data<Float>(d_weights)};
    };
    if (const auto* const cuda = cuda_kernels(a.x))
      check_launch(cuda->sru_backward(a.inputs<float>(), cells.const_data_ptr<float>(),
                       made(float()), cuda_stream(a.x)),
          "sru_backward");
    else
      in_threads(a.x, a.pieces(), [&]<class Float>(Float of, std::int64_t piece) {
        sru_backward_cpu(a.inputs<Float>(), cells.const_data_ptr<Float>(), made(of), piece);
      });
    context->saved_data.erase("cells");
    const auto weights = d_weights.sum(0);
    return {
        d_gates, d_x, d_start, weights[0], weights[1], weights[2], weights[3], Tensor(), Tensor()};
  }
};

}  // namespace

SruOutput sru_scan(const Tensor& gates, const Tensor& x, const Tensor& start,
    const SruWeights& weights, const Tensor& dropout, const Tensor& steps) {
  if (!(loops_take(x) || cuda_kernels(x) != nullptr) || gates.scalar_type() != x.scalar_type())
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
