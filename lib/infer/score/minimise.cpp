#include "infer/score/minimise.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

namespace infer {
namespace {

constexpr std::size_t kMemory = 10;      // number of stored steps
constexpr double kDescent = 1e-4;        // least decrease relative to the slope's prediction
constexpr double kLeastGradient = 1e-9;  // stops when no component exceeds it
constexpr int kHalvings = 40, kMostSteps = 200;

double dot(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Numbers sum(const Numbers& a, double scale, const Numbers& b) {
  Numbers c(a);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += scale * b[i];
  return c;
}

struct Step {
  Numbers moved, turned;  // changes of the point and of the gradient
  double product;         // inner product of the two, above 0
};

// Multiplies the gradient by the approximate inverse Hessian of the stored steps (L-BFGS).
Numbers direction_of(const Numbers& gradient, const std::deque<Step>& steps) {
  Numbers q = gradient, alpha;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    alpha.push_back(dot(step->moved, q) / step->product);
    q = sum(q, -alpha.back(), step->turned);
  }
  if (!steps.empty())
    for (auto& part : q)
      part *= steps.back().product / dot(steps.back().turned, steps.back().turned);
  for (const auto& step : steps) {
    q = sum(q, alpha.back() - dot(step.turned, q) / step.product, step.moved);
    alpha.pop_back();
  }
  return q;
}

}  // namespace

double minimise(const Smooth& function, Numbers& at) {
  Numbers gradient(at.size()), next_gradient(at.size());
  double value = function(at, gradient);
  std::deque<Step> steps;
  for (int n = 0; n < kMostSteps; ++n) {
    const double largest =
        std::accumulate(gradient.begin(), gradient.end(), 0.0,
                        [](double m, double g) { return std::max(m, std::abs(g)); });
    if (!(largest > kLeastGradient)) break;
    const Numbers down = direction_of(gradient, steps);
    const double slope = dot(gradient, down);
    double length = steps.empty() ? std::min(1.0, 1 / largest) : 1;
    Numbers next;
    double lower = value;
    bool found = false;
    for (int halving = 0; halving < kHalvings && !found; ++halving, length /= 2) {
      next = sum(at, -length, down);
      lower = function(next, next_gradient);
      found = lower <= value - kDescent * length * slope && lower < value;
    }
    if (!found) {
      if (steps.empty()) break;
      steps.clear();  // restart with steepest descent
      continue;
    }
    Step step{sum(next, -1, at), sum(next_gradient, -1, gradient), 0};
    step.product = dot(step.moved, step.turned);
    if (step.product > 0) steps.push_back(std::move(step));
    if (steps.size() > kMemory) steps.pop_front();
    at = next, gradient = next_gradient, value = lower;
  }
  return value;
}

}  // namespace infer
