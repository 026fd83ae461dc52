#include "train/newton_schulz.h"

namespace train {

torch::Tensor orthogonalised(const torch::Tensor& matrix) {
  constexpr int kSteps = 5;
  constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315, kLeast = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);  // multiply by the smaller of the two products
  auto x = (tall ? matrix.t() : matrix) / (matrix.norm() + kLeast);
  for (int step = 0; step < kSteps; ++step) {
    const auto a = x.mm(x.t());
    x = torch::addmm(x, torch::addmm(a, a, a, kCubic, kQuintic), x, kLinear, 1);
  }
  return tall ? x.t() : x;
}

}  // namespace train
