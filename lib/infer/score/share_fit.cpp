#include "infer/score/share_fit.h"

namespace infer {
namespace {

using torch::Tensor;
using ShareNumbers = std::vector<double>;

constexpr double kLeastMixed = 1e-300;  // keeps the logarithm of an underflowed probability finite
constexpr double kShareGap = 1e-9;      // in nats
constexpr int kShareSteps = 100, kShareSweeps = 1000, kShareHalvings = 40, kShareTurns = 100;

Tensor numbers_tensor(const ShareNumbers& values) { return torch::tensor(values, torch::kFloat64); }

double loss_of(const Tensor& mixed, const Tensor& weight) {
  return -weighted(mixed.clamp_min(kLeastMixed).log(), weight).mean().item<double>();
}

// Returns (R): each target's probability under the sources' shares.
Tensor mix(const Tensor& p, const ShareNumbers& shares) { return p.t().mv(numbers_tensor(shares)); }

// Minimises 1/2 x'Hx + b'x over x >= 0 by coordinate descent. H is (S, S), row-major.
void descend(const ShareNumbers& curvature, const ShareNumbers& linear, ShareNumbers& x) {
  const std::size_t n = x.size();
  for (int sweep = 0; sweep < kShareSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double slope = linear[i];
      for (std::size_t j = 0; j < n; ++j) slope += curvature[i * n + j] * x[j];
      const double own = std::max(curvature[i * n + i], kLeastMixed);
      const double next = std::max(0.0, x[i] - slope / own);
      moved = std::max(moved, std::abs(next - x[i]));
      x[i] = next;
    }
    if (moved < 1e-15) return;
  }
}

// -mean log(x p) + sum x. Its minimum over x >= 0 has sum 1, so the constraint on the sum is not
// needed.
double free_loss(const Tensor& p, const Tensor& weight, const ShareNumbers& x) {
  double sum = 0;
  for (const double one : x) sum += one;
  return loss_of(mix(p, x), weight) + sum;
}

// Fits shares of the sources (S, R), starting from `at`.
void fit_simplex(const Tensor& p, const Tensor& weight, ShareNumbers& at) {
  const auto n = at.size();
  const auto targets = static_cast<double>(p.size(1));
  for (int step = 0; step < kShareSteps && n > 1; ++step) {
    const Tensor ratio = p / mix(p, at).clamp_min(kLeastMixed);
    const Tensor counted = weighted(ratio, weight);
    const Tensor gains = counted.mean(1), products = counted.mm(ratio.t()) / targets;
    const ShareNumbers gain(gains.const_data_ptr<double>(), gains.const_data_ptr<double>() + n);
    // The loss is convex: this bounds how much better any other shares can be.
    if (*std::max_element(gain.begin(), gain.end()) - 1 <= kShareGap) return;
    const ShareNumbers curvature(
        products.const_data_ptr<double>(), products.const_data_ptr<double>() + n * n);
    ShareNumbers linear(n), aim = at;
    double slope = 0;
    for (std::size_t i = 0; i < n; ++i) {
      linear[i] = 1 - gain[i];
      for (std::size_t j = 0; j < n; ++j) linear[i] -= curvature[i * n + j] * at[j];
    }
    descend(curvature, linear, aim);
    for (std::size_t i = 0; i < n; ++i) slope += (1 - gain[i]) * (aim[i] - at[i]);
    const double value = free_loss(p, weight, at);
    ShareNumbers next(n);
    bool lower = false;
    double length = 1;
    for (int halving = 0; halving < kShareHalvings && !lower; ++halving, length /= 2) {
      for (std::size_t i = 0; i < n; ++i) next[i] = at[i] + length * (aim[i] - at[i]);
      lower = free_loss(p, weight, next) < value + 0.1 * length * slope;
    }
    if (!lower) return;  // only rounding is left
    double sum = 0;
    for (const double one : next) sum += one;
    for (std::size_t i = 0; i < n; ++i) at[i] = next[i] / sum;
  }
}

// Returns (R): the share of the source weighted by bucket for each target.
Tensor outer_shares(const ShareProblem& problem, const ShareNumbers& outer) {
  ShareNumbers shares = outer;
  shares.push_back(0);
  return numbers_tensor(shares).index_select(0, problem.bucket);
}

// Finds for each bucket the share x that maximises sum log(rest + x (outer - rest)). It is Newton's
// method within bounds that converge to the zero of the slope.
void fit_buckets(const ShareProblem& problem, const Tensor& rest, ShareNumbers& at) {
  const Tensor more = problem.outer - rest;
  const auto buckets = at.size();
  ShareNumbers low(buckets, -1), high(buckets, 2);  // outside [0, 1]: not tried yet
  for (int step = 0; step < kShareSteps; ++step) {
    const Tensor share = outer_shares(problem, at);
    const Tensor ratio = more / (rest + share * more).clamp_min(kLeastMixed);
    const Tensor zeros = torch::zeros({problem.buckets + 1}, torch::kFloat64);
    const auto sums = [&](const Tensor& values) {
      return zeros.index_add(0, problem.bucket, weighted(values, problem.weight));
    };
    const Tensor slopes = sums(ratio), curvatures = sums(ratio.square());
    double moved = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
      const double slope = slopes.const_data_ptr<double>()[b];
      const double curvature = curvatures.const_data_ptr<double>()[b];
      (slope > 0 ? low : high)[b] = at[b];
      double next = curvature > 0 ? at[b] + slope / curvature : at[b];
      if (next <= 0 && low[b] < 0) {
        next = 0;
      } else if (next >= kMostOuterShare && high[b] > 1) {
        next = kMostOuterShare;
      } else if (next < low[b] || next > high[b]) {
        next = (std::max(low[b], 0.0) + std::min(high[b], kMostOuterShare)) / 2;
      }
      moved = std::max(moved, std::abs(next - at[b]));
      at[b] = next;
    }
    if (moved < 1e-9) return;
  }
}

}  // namespace

double share_loss(const ShareProblem& problem, const FittedShares& shares) {
  Tensor mixed = mix(problem.p, shares.shares);
  if (problem.outer.defined())
    mixed = mixed + outer_shares(problem, shares.outer) * (problem.outer - mixed);
  return loss_of(mixed, problem.weight);
}

FittedShares fit_shares(const ShareProblem& problem, const FittedShares& start) {
  const std::int64_t sources = problem.p.size(0);
  const bool outer = problem.outer.defined();
  // Mixes p_joint's least share into every source, so that the shares are free from 0 to 1.
  const Tensor p = kLeastJointShare * problem.p[0] + (1 - kLeastJointShare) * problem.p;
  FittedShares fitted = start;
  ShareNumbers& at = fitted.shares;
  if (at.empty()) at.assign(static_cast<std::size_t>(sources), 1.0 / static_cast<double>(sources));
  if (!start.shares.empty())
    for (double& share : at)
      share =
          std::max(0.0, share - (&share == at.data()) * kLeastJointShare) / (1 - kLeastJointShare);
  if (outer && fitted.outer.empty())
    fitted.outer.assign(static_cast<std::size_t>(problem.buckets), kMostOuterShare / 2);
  const auto whole = [&] {
    FittedShares shares = fitted;
    for (double& share : shares.shares) share *= 1 - kLeastJointShare;
    shares.shares[0] += kLeastJointShare;
    return shares;
  };
  double last = HUGE_VAL;
  for (int turn = 0; turn < kShareTurns; ++turn) {
    if (outer) fit_buckets(problem, mix(p, at), fitted.outer);
    if (!outer) {
      fit_simplex(p, problem.weight, at);
      break;
    }
    const Tensor share = outer_shares(problem, fitted.outer);
    fit_simplex(p * (1 - share) + problem.outer * share, problem.weight, at);
    const double loss = share_loss(problem, whole());
    if (sources == 1 || last - loss < kShareGap) break;
    last = loss;
  }
  fitted = whole();
  if (outer) {
    const Tensor used = torch::bincount(problem.bucket, {}, problem.buckets + 1);
    for (std::int64_t b = 0; b < problem.buckets; ++b)
      if (const auto i = static_cast<std::size_t>(b); used[b].item<std::int64_t>() == 0)
        fitted.outer[i] = b % problem.run > 0 ? fitted.outer[i - 1] : 0;
  }
  fitted.loss = share_loss(problem, fitted);
  return fitted;
}

}  // namespace infer
