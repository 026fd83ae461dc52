#include "nn/ops/softmax_rows.h"

namespace nn {
namespace {

template <class Real>
SoftmaxRows<Real> rows_of(const RowSoftmax& softmax, const torch::Tensor& labels) {
  return {softmax.exp.size(0), softmax.exp.size(1), softmax.exp.stride(0),
      softmax.exp.data_ptr<Real>(), labels.const_data_ptr<std::int64_t>(),
      softmax.sum.data_ptr<Real>(), softmax.log_z.data_ptr<Real>(),
      softmax.log_prob.data_ptr<Real>()};
}

}  // namespace

RowSoftmax row_softmax_(torch::Tensor scores, const torch::Tensor& targets) {
  RowSoftmax out;
  out.exp = std::move(scores);
  const auto* const cuda = cuda_kernels(out.exp);
  if (in_host_memory(out.exp) || cuda != nullptr) {
    const auto rows = out.exp.size(0);
    out.sum = torch::empty({rows}, out.exp.options());
    out.log_z = torch::empty({rows}, out.exp.options());
    out.log_prob = torch::empty({rows}, out.exp.options());
    const auto labels = targets.contiguous();
    if (cuda != nullptr)
      check_launch(
          cuda->row_softmax(rows_of<float>(out, labels), cuda_stream(out.exp)), "row_softmax");
    else
      in_ranges(out.exp, rows, [&]<class Real>(Real, std::int64_t begin, std::int64_t end) {
        row_softmax_cpu(rows_of<Real>(out, labels), begin, end);
      });
    return out;
  }
  const auto maximum = out.exp.amax(1, /*keepdim=*/true);
  out.exp.sub_(maximum);
  const auto hit = out.exp.gather(1, targets.unsqueeze(1)).squeeze(1);
  out.exp.exp_();
  out.sum = out.exp.sum(1);
  const auto log_sum = out.sum.log();
  out.log_z = maximum.squeeze(1) + log_sum;
  out.log_prob = hit - log_sum;
  return out;
}

torch::Tensor row_softmax_backward(const RowSoftmax& softmax, const torch::Tensor& f,
    const torch::Tensor& weight, std::int64_t from, const torch::Tensor& targets,
    const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z, torch::Tensor& d_weight) {
  // exp is not changed: each row's factor multiplies the (R, d) sides of both products instead.
  const auto type = weight.scalar_type();
  const auto part = softmax.exp.narrow(1, from, weight.size(0)).to(type);
  const auto scale = ((d_log_z - d_log_prob) / softmax.sum).unsqueeze(1);
  const auto wide = f.to(scale.scalar_type());
  auto d_f = part.mm(weight).to(scale.scalar_type()).mul_(scale);
  const auto scaled = (wide * scale).to(type);
  if (d_weight.scalar_type() == type) d_weight.addmm_(part.t(), scaled);
  else d_weight.add_(part.t().mm(scaled));

  const auto inside = (targets >= from).logical_and_(targets < from + weight.size(0));
  if (!in_host_memory(f)) {  // asking for these rows would wait for the device
    const auto words = (targets - from).clamp(0, weight.size(0) - 1);
    const auto d_hit = torch::where(inside, d_log_prob, torch::zeros_like(d_log_prob)).unsqueeze(1);
    d_f.add_(weight.index_select(0, words).to(d_hit.scalar_type()) * d_hit);
    // The order of additions is fixed, unlike in index_add_.
    d_weight.index_put_({words}, (wide * d_hit).to(d_weight.scalar_type()), /*accumulate=*/true);
    return d_f;
  }
  const auto rows = inside.nonzero().flatten();
  const auto words = targets.index_select(0, rows) - from;
  const auto d_hit = d_log_prob.index_select(0, rows).unsqueeze(1);
  d_f.index_add_(0, rows, weight.index_select(0, words).to(d_hit.scalar_type()) * d_hit);
  const auto hits = (wide.index_select(0, rows) * d_hit).to(d_weight.scalar_type());
  d_weight.index_add_(0, words, hits);
  return d_f;
}

void row_bias_backward(const RowSoftmax& softmax, std::int64_t from, const torch::Tensor& targets,
    const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z, torch::Tensor& d_bias) {
  const auto n = d_bias.size(0);
  auto d = softmax.exp.narrow(1, from, n).t().mv((d_log_z - d_log_prob) / softmax.sum);
  const auto inside = (targets >= from).logical_and_(targets < from + n);
  const auto hits = torch::where(inside, d_log_prob, torch::zeros_like(d_log_prob));
  d.index_put_({(targets - from).clamp(0, n - 1)}, hits, /*accumulate=*/true);
  d_bias.add_(d.to(d_bias.scalar_type()));
}

}  // namespace nn
