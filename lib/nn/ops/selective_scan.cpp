#include "nn/ops/selective_scan.h"

#include "nn/kernels/selective_scan_kernels.h"
#include "nn/ops/gla_scan.h"

namespace nn {
namespace {

// Computes all pieces. `of` is x, dt, a, b, c, states, y; backward: and the gradients, as in
// SelectiveScan.
void run(const variable_list& of, bool backward) {
  const Tensor &x = of[0], &a = of[2];
  const auto pieces = x.size(0) * SelectiveScan<float>::blocks(x.size(2));
  in_threads(x, pieces, [&]<class Real>(Real, std::int64_t piece) {
    const auto data = [&](std::size_t i) {
      return i < of.size() ? of[i].data_ptr<Real>() : nullptr;
    };
    const SelectiveScan<Real> scan{x.size(1), x.size(2), a.size(0), data(0), data(1), data(2),
        data(3), data(4), data(5), data(6), data(7), data(8), data(9), data(10), data(11),
        data(12)};
    backward ? scan.backward(piece) : scan.forward(piece);
  });
}

// Here a is (n, width).
class SelectiveFunction : public torch::autograd::Function<SelectiveFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& dt,
      const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& start) {
    const auto part = SelectiveScan<float>::kPart, parts = (x.size(1) + part - 1) / part;
    const Tensor y = torch::empty_like(x),
                 states = torch::empty({x.size(0), parts + 1, a.size(0), x.size(2)}, x.options());
    states.select(1, 0).copy_(start.transpose(1, 2));
    run({x, dt, a, b, c, states, y}, /*backward=*/false);
    context->save_for_backward({x, dt, a, b, c, states});
    return {y, states.select(1, parts).transpose(1, 2).clone(at::MemoryFormat::Contiguous)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto all = context->get_saved_variables();
    const Tensor x = all[0], b = all[3], d_state = torch::zeros_like(all[5].select(1, 0));
    if (gradients[1].defined()) d_state.copy_(gradients[1].transpose(1, 2));
    const auto blocks = SelectiveScan<float>::blocks(x.size(2));
    const auto shared = [&] {
      return torch::empty({x.size(0), blocks, x.size(1), b.size(2)}, x.options());
    };
    for (const Tensor& made :
        {gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(x), d_state,
            torch::zeros_like(d_state), torch::empty_like(x), torch::empty_like(x), shared(),
            shared()})
      all.push_back(made);
    run(all, /*backward=*/true);
    return {
        all[9], all[10], all[8].sum(0), all[11].sum(1), all[12].sum(1), d_state.transpose(1, 2)};
  }
};

}  // namespace

SelectiveOutput selective_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
    const Tensor& c, const Tensor& start) {
  if (!in_host_memory(x)) {
    const auto rate = dt.unsqueeze(3);
    const auto out = gla_scan(
        {c.unsqueeze(2), b.unsqueeze(2), rate * a, rate * x.unsqueeze(3), start.unsqueeze(3)});
    return {out.o.squeeze(3), out.state.squeeze(3)};
  }
  const auto type = accumulation_type(x);
  const auto whole = [&](const Tensor& in) { return in.to(type).contiguous(); };
  const auto out = SelectiveFunction::apply(
      whole(x), whole(dt), whole(a.t()), whole(b), whole(c), start.to(type));
  return {out[0], out[1]};
}

}  // namespace nn
