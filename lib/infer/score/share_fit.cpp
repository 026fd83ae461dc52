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
  return loss_of(mix(p, x), weight) + std::accumulate(x.begin(), x.end(), 0.0);
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
    const double sum = std::accumulate(next.begin(), next.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) at[i] = next[i] / sum;
  }
}

// Returns (R): the share of the source for each target.
Tensor outer_shares(const OuterSource& source, ShareNumbers shares) {
  shares.push_back(0);
  return numbers_tensor(shares).index_select(0, source.bucket);
}

// Returns p (..., R) mixed with the outer sources from `begin` to before `end`.
Tensor with_outer(Tensor p, const ShareProblem& problem, const FittedShares& at, std::size_t begin,
    std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) p = problem.outer[i].mixed(p, at.outer[i]);
  return p;
}

// Finds for each bucket the share x that maximises sum log(rest + x more). It is Newton's method
// within bounds that converge to the zero of the slope.
void fit_buckets(const OuterSource& source, const Tensor& rest, const Tensor& more,
    const Tensor& weight, ShareNumbers& at) {
  const auto buckets = at.size();
  ShareNumbers low(buckets, -1), high(buckets, 2);  // outside [0, 1]: not tried yet
  for (int step = 0; step < kShareSteps; ++step) {
    const Tensor share = outer_shares(source, at);
    const Tensor ratio = more / (rest + share * more).clamp_min(kLeastMixed);
    const Tensor zeros = torch::zeros({source.buckets + 1}, torch::kFloat64);
    const auto sums = [&](const Tensor& values) {
      return zeros.index_add(0, source.bucket, weighted(values, weight));
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

constexpr double kLeastLog = -690;  // logarithm used for probability 0

struct Scale {
  Tensor mean, deviation;  // (F); the deviation is 0 if all values are equal
};

Scale scale_of(const Tensor& features) {
  const Tensor seen = features.isfinite().to(torch::kFloat64);
  const Tensor n = seen.sum(0).clamp_min(1);
  const Tensor values = features.nan_to_num(0, 0, 0);
  const Tensor mean = values.sum(0) / n;
  const Tensor deviation = (((values - mean) * seen).square().sum(0) / n).sqrt();
  return {mean, torch::where(deviation > 1e-9 * mean.abs() + 1e-12, deviation, 0)};
}

Tensor apply(const Scale& scale, const Tensor& features) {
  const Tensor usable = scale.deviation > 0;
  return torch::where(usable, (features - scale.mean) / torch::where(usable, scale.deviation, 1), 0)
      .masked_fill(features.isnan(), NAN);
}

}  // namespace

Tensor OuterSource::mixed(const Tensor& p, const std::vector<double>& weights) const {
  return p + outer_shares(*this, weights) * (this->p - p);
}

double share_loss(const ShareProblem& problem, const FittedShares& shares) {
  return loss_of(
      with_outer(mix(problem.p, shares.shares), problem, shares, 0, problem.outer.size()),
      problem.weight);
}

FittedShares fit_shares(const ShareProblem& problem, const FittedShares& start) {
  const std::int64_t sources = problem.p.size(0);
  const std::size_t outer = problem.outer.size();
  // Mixes p_joint's least share into every source, so that the shares are free from 0 to 1.
  const Tensor p = kLeastJointShare * problem.p[0] + (1 - kLeastJointShare) * problem.p;
  FittedShares fitted = start;
  ShareNumbers& at = fitted.shares;
  if (at.empty()) at.assign(static_cast<std::size_t>(sources), 1.0 / static_cast<double>(sources));
  if (!start.shares.empty())
    for (double& share : at)
      share =
          std::max(0.0, share - (&share == at.data()) * kLeastJointShare) / (1 - kLeastJointShare);
  if (fitted.outer.empty())
    for (const auto& source : problem.outer)
      fitted.outer.emplace_back(static_cast<std::size_t>(source.buckets), kMostOuterShare / 2);
  const auto whole = [&] {
    FittedShares shares = fitted;
    for (double& share : shares.shares) share *= 1 - kLeastJointShare;
    shares.shares[0] += kLeastJointShare;
    return shares;
  };
  double last = HUGE_VAL;
  for (int turn = 0; turn < kShareTurns; ++turn) {
    for (std::size_t i = 0; i < outer; ++i) {
      const Tensor before = with_outer(mix(p, at), problem, fitted, 0, i);
      const Tensor rest = with_outer(before, problem, fitted, i + 1, outer);
      const Tensor whole = with_outer(problem.outer[i].p, problem, fitted, i + 1, outer);
      fit_buckets(problem.outer[i], rest, whole - rest, problem.weight, fitted.outer[i]);
    }
    fit_simplex(with_outer(p, problem, fitted, 0, outer), problem.weight, at);
    if (outer == 0) break;
    const double loss = share_loss(problem, whole());
    if ((sources == 1 && outer == 1) || last - loss < kShareGap) break;
    last = loss;
  }
  fitted = whole();
  for (std::size_t i = 0; i < outer; ++i) {
    const OuterSource& source = problem.outer[i];
    const Tensor used = torch::bincount(source.bucket, {}, source.buckets + 1);
    for (std::int64_t b = 0; b < source.buckets; ++b)
      if (const auto k = static_cast<std::size_t>(b); used[b].item<std::int64_t>() == 0)
        fitted.outer[i][k] = b % source.run > 0 ? fitted.outer[i][k - 1] : 0;
  }
  fitted.loss = share_loss(problem, fitted);
  return fitted;
}

double minimise(const Smooth& function, Numbers& at) {
  Numbers gradient(at.size()), next_gradient(at.size());
  double value = function(at, gradient);
  std::deque<Step> steps;
  for (int n = 0; n < kMostSteps; ++n) {
    const double largest = std::accumulate(gradient.begin(), gradient.end(), 0.0,
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

double gate_objective(const GateProblem& problem, const Numbers& at, Numbers& gradient) {
  const auto n = static_cast<double>(problem.log_p.size(0));
  std::vector<Tensor> scores = {torch::zeros({problem.log_p.size(0)}, torch::kFloat64)};
  std::vector<Tensor> seen, inputs;
  const double* next = at.data();
  double squares = 0;
  for (std::size_t s = 0; s < problem.features.size(); ++s) {
    const Tensor& features = problem.features[s];
    const double bias = *next++;
    const Tensor weights =
        torch::tensor(std::vector<double>(next, next + features.size(1)), torch::kFloat64);
    next += features.size(1);
    squares += weights.square().sum().item<double>();
    seen.push_back(features.isnan().any(1).logical_not().to(torch::kFloat64));
    inputs.push_back(features.nan_to_num(0, 0, 0));
    scores.push_back(problem.offsets.select(1, static_cast<std::int64_t>(s)) +
                     seen[s] * (inputs[s].mv(weights) + bias));
  }
  const Tensor log_shares = torch::stack(scores, 1).log_softmax(1);
  const Tensor parts = log_shares + problem.log_p.clamp_min(kLeastLog);
  const Tensor log_mix = parts.logsumexp(1, /*keepdim=*/true);
  const Tensor turn =
      weighted(log_shares.exp() - (parts - log_mix).exp(), problem.weight) / n;  // d loss / d score
  double* to = gradient.data();
  next = at.data();
  for (std::size_t s = 0; s < inputs.size(); ++s) {
    const Tensor own = turn.select(1, static_cast<std::int64_t>(s) + 1) * seen[s];
    *to++ = own.sum().item<double>();
    ++next;
    const Tensor of_weights = inputs[s].t().mv(own).contiguous();
    for (std::int64_t i = 0; i < of_weights.size(0); ++i)
      *to++ = of_weights[i].item<double>() + *next++ / n;
  }
  return -weighted(log_mix, problem.weight).mean().item<double>() + squares / (2 * n);
}

FittedGate fit_gate(const GateProblem& problem) {
  GateProblem scaled = problem;
  std::vector<Scale> scales;
  std::size_t numbers = 0;
  for (auto& features : scaled.features) {
    scales.push_back(scale_of(features));
    features = apply(scales.back(), features);
    numbers += static_cast<std::size_t>(features.size(1)) + 1;
  }
  Numbers at(numbers, 0), unused(numbers);
  FittedGate fitted;
  fitted.constant_loss = gate_objective(scaled, at, unused);
  fitted.loss =
      minimise([&](const Numbers& x, Numbers& g) { return gate_objective(scaled, x, g); }, at);
  double squares = 0;
  const double* next = at.data();
  for (const Scale& scale : scales) {
    FittedGate::Row row{*next++, {}};
    for (std::int64_t i = 0; i < scale.mean.size(0); ++i) {
      const double weight = *next++, deviation = scale.deviation[i].item<double>();
      squares += weight * weight;
      row.weights.push_back(deviation > 0 ? weight / deviation : 0);
      row.bias -= row.weights.back() * scale.mean[i].item<double>();
    }
    fitted.rows.push_back(std::move(row));
  }
  fitted.loss -= squares / (2 * static_cast<double>(problem.log_p.size(0)));
  return fitted;
}

}  // namespace infer
