// The fit of gates: values and gradients compared with plain loops, and the result.

#include <doctest/doctest.h>

#include "core/rng.h"
#include "infer/score/samples.h"

namespace {

using torch::Tensor;

// Sources of which one is right if its first feature is above 0.
infer::GateProblem problem_of(
    std::int64_t tokens, std::vector<std::int64_t> features, bool holes = false) {
  core::Rng rng(11);
  infer::GateProblem problem;
  const auto sources = std::ssize(features);
  problem.log_p = torch::empty({tokens, sources + 1}, torch::kFloat64);
  problem.offsets = torch::empty({tokens, sources}, torch::kFloat64);
  for (const auto n : features)
    problem.features.push_back(torch::empty({tokens, n}, torch::kFloat64));
  for (std::int64_t i = 0; i < tokens; ++i) {
    problem.log_p[i][0] = std::log(rng.uniform());
    for (std::int64_t s = 0; s < sources; ++s) {
      double first = 0;
      for (std::int64_t j = 0; j < features[static_cast<std::size_t>(s)]; ++j) {
        const double x = 2 + 3 * rng.normal();
        if (j == 0) first = x - 2;
        problem.features[static_cast<std::size_t>(s)][i][j] = x;
      }
      const bool right = rng.uniform() < 1 / (1 + std::exp(-first));
      problem.log_p[i][s + 1] = right ? std::log(0.5 + 0.5 * rng.uniform()) : -HUGE_VAL;
      problem.offsets[i][s] = holes && i % 7 == 3 ? -HUGE_VAL : -1.0 - static_cast<double>(s);
      if (holes && i % 5 == 2) problem.features[static_cast<std::size_t>(s)][i].fill_(NAN);
    }
  }
  return problem;
}

double plain_objective(const infer::GateProblem& problem, const infer::Numbers& at) {
  double sum = 0, squares = 0;
  const std::int64_t tokens = problem.log_p.size(0);
  for (std::int64_t i = 0; i < tokens; ++i) {
    double all = 1, mix = std::exp(problem.log_p[i][0].item<double>());
    std::size_t next = 0;
    for (std::size_t s = 0; s < problem.features.size(); ++s) {
      const Tensor x = problem.features[s][i];
      double more = at[next++];
      for (std::int64_t j = 0; j < x.size(0); ++j) more += x[j].item<double>() * at[next++];
      const auto column = static_cast<std::int64_t>(s);
      const double share =
          std::exp(problem.offsets[i][column].item<double>() + (std::isnan(more) ? 0 : more));
      all += share;
      mix += share * std::exp(problem.log_p[i][column + 1].item<double>());
    }
    const double weight = problem.weight.defined() ? problem.weight[i][0].item<double>() : 1;
    sum -= weight * std::log(mix / all);
  }
  std::size_t next = 0;
  for (const auto& features : problem.features) {
    ++next;
    for (std::int64_t j = 0; j < features.size(1); ++j, ++next) squares += at[next] * at[next];
  }
  return (sum + squares / 2) / static_cast<double>(tokens);
}

}  // namespace

DOCTEST_TEST_CASE("a gate's objective and its gradient are those of plain loops") {
  for (const auto& features : std::vector<std::vector<std::int64_t>>{{3}, {4, 1}, {3, 5, 2}}) {
    for (const bool holes : {false, true}) {
      auto problem = problem_of(60, features, holes);
      infer::Numbers at;
      core::Rng rng(3);
      if (holes) problem.weight = 2 * torch::arange(1, 61, torch::kFloat64).unsqueeze(1) / 61;
      for (const auto n : features)
        for (std::int64_t j = 0; j <= n; ++j) at.push_back(0.3 * rng.normal());
      infer::Numbers gradient(at.size()), unused(at.size());
      const double value = infer::gate_objective(problem, at, gradient);
      DOCTEST_CHECK(value == doctest::Approx(plain_objective(problem, at)).epsilon(1e-12));
      for (std::size_t i = 0; i < at.size(); ++i) {
        constexpr double kStep = 1e-5;
        auto more = at, less = at;
        more[i] += kStep, less[i] -= kStep;
        const double slope =
            (plain_objective(problem, more) - plain_objective(problem, less)) / (2 * kStep);
        DOCTEST_CHECK(std::abs(gradient[i] - slope) < 1e-8);
      }
    }
  }
}

DOCTEST_TEST_CASE("the fit ends where no slope is left, and finds the feature that tells") {
  auto problem = problem_of(4000, {2, 2});
  const auto fitted = infer::fit_gate(problem);
  DOCTEST_CHECK(fitted.loss < fitted.constant_loss - 0.1);
  for (const auto& row : fitted.rows) {
    DOCTEST_CHECK(row.weights[0] > 0.2);
    DOCTEST_CHECK(std::abs(row.weights[1]) < 0.1);
  }
  // The reported loss holds for the unscaled features too.
  infer::Numbers at;
  double squares = 0;
  for (const auto& row : fitted.rows) {
    at.push_back(row.bias);
    for (const double weight : row.weights) at.push_back(weight), squares += weight * weight;
  }
  DOCTEST_CHECK(
      plain_objective(problem, at) - squares / 8000 == doctest::Approx(fitted.loss).epsilon(1e-9));
  // A constant feature gets weight 0.
  problem.features[0].select(1, 1).fill_(7);
  DOCTEST_CHECK(infer::fit_gate(problem).rows[0].weights[1] == 0);
}

DOCTEST_TEST_CASE("the minimum of a bowl and of a bent valley") {
  int calls = 0;
  infer::Numbers at = {-1.2, 1, 5};
  const double least = infer::minimise(
      [&](const infer::Numbers& x, infer::Numbers& g) {
        ++calls;
        const double bend = x[1] - x[0] * x[0];
        g = {-400 * x[0] * bend - 2 * (1 - x[0]), 200 * bend, 6 * (x[2] - 2)};
        return 100 * bend * bend + (1 - x[0]) * (1 - x[0]) + 3 * (x[2] - 2) * (x[2] - 2);
      },
      at);
  DOCTEST_CHECK(least < 1e-12);
  DOCTEST_CHECK(calls < 200);
  DOCTEST_CHECK(at[0] == doctest::Approx(1));
  DOCTEST_CHECK(at[1] == doctest::Approx(1));
  DOCTEST_CHECK(at[2] == doctest::Approx(2));
}

DOCTEST_TEST_CASE("samples are thinned evenly where there is no room for all") {
  infer::Samples samples(8 * 3 * 20);  // at most 20 tokens of 3 numbers
  const auto parts_of = [](std::int64_t begin, std::int64_t end) {
    infer::Parts parts;
    parts.head = torch::arange(begin, end, torch::kFloat64);
    auto& source = parts.sources.emplace_back();
    source.axes = {0};
    source.separate = {torch::stack({parts.head + 0.5, -parts.head})};
    return parts;
  };
  samples.add(parts_of(0, 15));
  DOCTEST_CHECK(samples.size() == 15);
  DOCTEST_CHECK(
      torch::equal(samples.parts().sources[0].separate[0], parts_of(0, 15).sources[0].separate[0]));
  samples.add(parts_of(15, 40));
  samples.add(parts_of(40, 41));
  const auto kept = samples.parts();
  const Tensor expected = torch::arange(0, 41, 4, torch::kFloat64);
  DOCTEST_CHECK(torch::equal(kept.head, expected));
  DOCTEST_CHECK(torch::equal(kept.sources[0].separate[0][1], -expected));
  DOCTEST_CHECK_FALSE(kept.weight.defined());
}
