#include "task/accuracy.h"

#include <algorithm>
#include <cmath>

namespace task {

Accuracy accuracy(const std::vector<bool>& right) {
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(right.size());
  Accuracy found{static_cast<double>(std::count(right.begin(), right.end(), true)) / n, {}, {}};
  if (right.size() < 2) return found;
  const double share = found.share, z2 = kZ * kZ / n;
  const double middle = (share + z2 / 2) / (1 + z2);
  const double reach = std::sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2);
  found.low = share == 0 ? 0 : middle - reach;
  found.high = share == 1 ? 1 : middle + reach;
  return found;
}

}  // namespace task
