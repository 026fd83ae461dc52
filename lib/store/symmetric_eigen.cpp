#include "store/symmetric_eigen.h"

namespace store {
namespace {

constexpr int kMostSweeps = 60;
constexpr double kSmall = 1e-14;

struct Rotation {
  double c, s;
};

// Returns the rotation that zeroes element (p, q) of [[a, b], [b, d]].
Rotation rotation_of(double a, double b, double d) {
  const double theta = (d - a) / (2 * b);
  const double t = std::copysign(1 / (std::abs(theta) + std::hypot(1, theta)), theta);
  const double c = 1 / std::hypot(1, t);
  return {c, t * c};
}

void turn(double* p, double* q, std::size_t n, Rotation r) {
  for (std::size_t i = 0; i < n; ++i) {
    const double x = p[i], y = q[i];
    p[i] = r.c * x - r.s * y;
    q[i] = r.s * x + r.c * y;
  }
}

}  // namespace

Eigen symmetric_eigen(std::vector<double> matrix, std::size_t n) {
  double* const a = matrix.data();
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q < p; ++q) a[p * n + q] = a[q * n + p];
  std::vector<double> vectors(n * n);
  for (std::size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
  double largest = 0;
  for (const double number : matrix) largest = std::max(largest, std::abs(number));
  bool turned = largest > 0;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (std::abs(a[p * n + q]) <= kSmall * largest) continue;
        turned = true;
        const Rotation r = rotation_of(a[p * n + p], a[p * n + q], a[q * n + q]);
        turn(a + p * n, a + q * n, n, r);  // rows first, then columns of the result
        for (std::size_t i = 0; i < n; ++i) {
          const double x = a[i * n + p], y = a[i * n + q];
          a[i * n + p] = r.c * x - r.s * y;
          a[i * n + q] = r.s * x + r.c * y;
        }
        turn(&vectors[p * n], &vectors[q * n], n, r);
      }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return a[i * n + i] > a[j * n + j]; });
  Eigen found;
  for (const std::size_t i : order) {
    found.values.push_back(a[i * n + i]);
    found.vectors.insert(found.vectors.end(), vectors.begin() + static_cast<std::ptrdiff_t>(i * n),
                         vectors.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  }
  return found;
}

}  // namespace store
