#include "infer/score/gate_fit.h"

#include "infer/score/share_fit.h"

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

using torch::Tensor;

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
