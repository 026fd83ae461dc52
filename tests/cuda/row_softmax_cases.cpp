#include "kernel_cases.h"
#include "nn/kernels/row_softmax_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

double softmax_gap(std::int64_t rows, std::int64_t n, std::int64_t stride) {
  const auto scores = random_floats(std::size_t(rows * stride), 1, -20, 20);
  std::vector<std::int64_t> targets;
  for (std::int64_t r = 0; r < rows; ++r) targets.push_back((r * 7 + n - 1) % n);
  // The formulas in double.
  Floats exp = scores, sum, log_z, log_prob;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const row = exp.data() + r * stride;
    const double hit = double(row[targets[std::size_t(r)]]);
    const double most = double(*std::max_element(row, row + n));
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double e = std::exp(double(row[i]) - most);
      row[i] = float(e);
      total += e;
    }
    sum.push_back(float(total));
    log_z.push_back(float(most + std::log(total)));
    log_prob.push_back(float(hit - most - std::log(total)));
  }
  OnDevice<float> scores_(scores);
  OnDevice<std::int64_t> targets_(targets);
  const auto each = std::size_t(rows);
  auto sum_ = OnDevice<float>::unwritten(each), log_z_ = OnDevice<float>::unwritten(each),
       log_prob_ = OnDevice<float>::unwritten(each);
  require(nn::row_softmax_cuda({rows, n, stride, scores_.data(), targets_.data(), sum_.data(),
                                   log_z_.data(), log_prob_.data()},
              nullptr) == 0,
      "row_softmax");
  constexpr double kClose = 1e-5;
  Worst worst;
  worst(gap(scores_.back(), exp) / kClose);
  worst(gap(sum_.back(), sum) / kClose);
  worst(gap(log_z_.back(), log_z) / kClose);
  worst(gap(log_prob_.back(), log_prob) / kClose);
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> row_softmax_cases() {
  return {{"softmax of 3 rows of 1,301", [] { return softmax_gap(3, 1301, 1301); }},
      {"softmax of rows that stand apart", [] { return softmax_gap(2, 77, 80); }},
      {"softmax of one score", [] { return softmax_gap(1, 1, 1); }}};
}

}  // namespace cuda_test
