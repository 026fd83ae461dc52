#include "nn/ops/softmax_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "nn/base/cuda.h"

namespace nn {
namespace {

constexpr std::int64_t kLanes = 32;  // independent sums, so that loops become vector instructions

/// e^x for x <= 0 to 2 units in the last place, without a branch: 2^n times a polynomial on
/// [-ln2/2, ln2/2].
inline float exp_negative(float x) {
  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
  constexpr float kRound = 12582912.0F;
  x = x < -87.0F ? -87.0F : x;
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040;  // Taylor's series: the remainder is below 2^-27 on this interval
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent =
      (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound)) + 127;
  return p * std::bit_cast<float>(exponent << 23);
}

inline double exp_negative(double x) { return std::exp(x); }

template <class T>
T row_maximum(const T* row, std::int64_t n) {
  T lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -std::numeric_limits<T>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t j = 0; j < kLanes; ++j)
      lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], row[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

/// row <- exp(row - maximum); returns the sum.
template <class T>
double exponentiate(T* row, std::int64_t n, T maximum) {
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) {
      row[i + j] = exp_negative(row[i + j] - maximum);
      lanes[j] += row[i + j];
    }
  }
  double sum = 0;
  for (; i < n; ++i) sum += row[i] = exp_negative(row[i] - maximum);
  for (const T lane : lanes) sum += lane;
  return sum;
}

template <class T>
void softmax_on_cpu(RowSoftmax& out, const torch::Tensor& targets) {
  T* const scores = out.exp.data_ptr<T>();
  T* const sums = out.sum.data_ptr<T>();
  T* const log_z = out.log_z.data_ptr<T>();
  T* const log_prob = out.log_prob.data_ptr<T>();
  const std::int64_t* const target = targets.data_ptr<std::int64_t>();
  const auto n = out.exp.size(1), stride = out.exp.stride(0);
  at::parallel_for(0, out.exp.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r) {
      T* const row = scores + r * stride;
      const T maximum = row_maximum(row, n), hit = row[target[r]];
      const double sum = exponentiate(row, n, maximum);
      sums[r] = static_cast<T>(sum);
      log_z[r] = static_cast<T>(maximum + std::log(sum));
      log_prob[r] = static_cast<T>((hit - maximum) - std::log(sum));
    }
  });
}

}  // namespace

torch::ScalarType accumulation_type(const torch::Tensor& weight) {
  return weight.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

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
          cuda->row_softmax({rows, out.exp.size(1), out.exp.stride(0), out.exp.data_ptr<float>(),
                             labels.const_data_ptr<std::int64_t>(), out.sum.data_ptr<float>(),
                             out.log_z.data_ptr<float>(), out.log_prob.data_ptr<float>()},
                            cuda_stream(out.exp)),
          "row_softmax");
    else if (out.exp.scalar_type() == torch::kFloat64)
      softmax_on_cpu<double>(out, labels);
    else
      softmax_on_cpu<float>(out, labels);
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
                                   const torch::Tensor& weight, std::int64_t from,
                                   const torch::Tensor& targets, const torch::Tensor& d_log_prob,
                                   const torch::Tensor& d_log_z, torch::Tensor& d_weight) {
  // exp keeps its values: the factor of each row goes onto the (R, d) sides of both products.
  const auto type = weight.scalar_type();
  const auto part = softmax.exp.narrow(1, from, weight.size(0)).to(type);
  const auto scale = ((d_log_z - d_log_prob) / softmax.sum).unsqueeze(1);
  const auto wide = f.to(scale.scalar_type());
  auto d_f = part.mm(weight).to(scale.scalar_type()).mul_(scale);
  const auto scaled = (wide * scale).to(type);
  if (d_weight.scalar_type() == type)
    d_weight.addmm_(part.t(), scaled);
  else
    d_weight.add_(part.t().mm(scaled));

  const auto inside = (targets >= from).logical_and_(targets < from + weight.size(0));
  if (!in_host_memory(f)) {  // without asking which rows those are, which would wait for the device
    const auto words = (targets - from).clamp(0, weight.size(0) - 1);
    const auto d_hit = torch::where(inside, d_log_prob, torch::zeros_like(d_log_prob)).unsqueeze(1);
    d_f.add_(weight.index_select(0, words).to(d_hit.scalar_type()) * d_hit);
    // In a fixed order, unlike index_add_.
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

}  // namespace nn
