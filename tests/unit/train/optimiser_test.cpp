#include "train/optimiser.h"

#include <doctest/doctest.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "nn/base/cuda.h"
#include "nn/ops/gathered_sum.h"

using torch::Tensor;

namespace {

// Learning rates of six steps: rising, falling, one of them zero.
constexpr double kRates[] = {0.01, 0.02, 0.03, 0.015, 0.0, 0.01};

struct Problem {
  std::vector<Tensor> start, gradients;  // start[i]; gradients[step * count + i]
  Problem() {
    torch::manual_seed(3);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{300, 250}, {70001}, {3}}) {
      start.push_back(torch::randn(shape));
    }
    for (std::size_t step = 0; step < std::size(kRates); ++step) {
      for (const auto& tensor : start) gradients.push_back(torch::randn_like(tensor));
    }
  }
};

train::NamedWeights copy_of(const Problem& problem, bool strided) {
  train::NamedWeights weights;
  for (std::size_t i = 0; i < problem.start.size(); ++i) {
    Tensor w = problem.start[i].clone();
    if (strided) w = torch::stack({w, w}, -1).select(-1, 0);  // not contiguous: the general path
    weights.emplace_back("h." + std::to_string(i) + ".weight", w.detach().requires_grad_());
  }
  return weights;
}

void run(train::Optimiser& optimiser, const Problem& problem, double scale, std::size_t from = 0,
    std::size_t to = std::size(kRates)) {
  const auto& weights = optimiser.weights();
  for (std::size_t step = from; step < to; ++step) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      auto w = weights[i].second;
      w.mutable_grad() = problem.gradients[step * weights.size() + i].clone();
    }
    optimiser.step(kRates[step], torch::tensor(scale));
  }
}

// The formulas of optimiser.h, one element at a time, in double.
std::vector<Tensor> reference(
    const train::OptimiserOptions& o, const Problem& problem, double scale) {
  std::vector<Tensor> out;
  int rectified = 0;  // radam: steps that divide by the root
  const std::size_t count = problem.start.size();
  for (std::size_t i = 0; i < count; ++i) {
    Tensor w = problem.start[i].to(torch::kFloat64), m = torch::zeros_like(w),
           v = torch::zeros_like(w);
    const double decay = o.decay == "all" || w.dim() >= 2 ? o.weight_decay : 0;
    double before = -1;
    for (std::size_t step = 0; step < std::size(kRates); ++step) {
      const double lr = kRates[step], t = static_cast<double>(step) + 1;
      const Tensor g = problem.gradients[step * count + i].to(torch::kFloat64) * scale;
      if (o.optimiser == "nag") {
        const double c = before < 0 ? 1 : before == 0 ? lr : lr / before;
        w = w * (1 - lr * decay) + o.momentum * o.momentum * c * m - (1 + o.momentum) * lr * g;
        m = o.momentum * c * m - lr * g;
        before = lr;
        continue;
      }
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const bool corrects = o.bias_correction;
      const double c1 = corrects ? 1 - std::pow(o.beta1, t) : 1;
      const double c2 = corrects ? 1 - std::pow(o.beta2, t) : 1;
      w = w * (1 - lr * decay);
      if (o.optimiser == "radam") {
        const double most = 2 / (1 - o.beta2) - 1;
        const double length = most - 2 * t * std::pow(o.beta2, t) / (1 - std::pow(o.beta2, t));
        rectified += length >= 5;
        const double share =
            std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
        w = length < 5 ? w - lr * m / c1
                       : w - lr * share * (m / c1) / (v.sqrt() + o.epsilon) * std::sqrt(c2);
        continue;
      }
      w = o.optimiser == "adam" ? w - lr * std::sqrt(c2) / c1 * m / (v.sqrt() + o.epsilon)
                                : w - lr * (m / c1) / ((v / c2).sqrt() + o.epsilon);
    }
    out.push_back(w);
  }
  if (o.optimiser == "radam") DOCTEST_CHECK(rectified == static_cast<int>(count));
  return out;
}

using DoubleRows = std::vector<std::vector<double>>;

DoubleRows double_rows(const Tensor& matrix) {
  DoubleRows rows(static_cast<std::size_t>(matrix.size(0)));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::int64_t j = 0; j < matrix.size(1); ++j)
      rows[i].push_back(matrix[static_cast<std::int64_t>(i)][j].item<double>());
  return rows;
}

DoubleRows double_product(const DoubleRows& a, const DoubleRows& b) {
  DoubleRows out(a.size(), std::vector<double>(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}

DoubleRows double_transposed(const DoubleRows& a) {
  DoubleRows out(a[0].size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
  return out;
}

// Five steps of x = a x + b (x x^T) x + c (x x^T)^2 x, one element at a time; no side is swapped.
DoubleRows plain_newton_schulz(DoubleRows x) {
  double square = 0;
  for (const auto& row : x)
    for (const double each : row) square += each * each;
  for (auto& row : x)
    for (double& each : row) each /= std::sqrt(square) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const DoubleRows cubic = double_product(double_product(x, double_transposed(x)), x);
    const DoubleRows quintic = double_product(double_product(x, double_transposed(x)), cubic);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x[0].size(); ++j)
        x[i][j] = 3.4445 * x[i][j] - 4.7750 * cubic[i][j] + 2.0315 * quintic[i][j];
  }
  return x;
}

}  // namespace

DOCTEST_TEST_CASE("optimisers follow their formulas, fused and not, with both kinds of decay") {
  const Problem problem;
  for (const std::string name : {"adamw", "adam", "radam", "nag"}) {
    for (const std::string decay : {"matrices", "all"}) {
      for (const bool strided : {false, true}) {
        DOCTEST_CAPTURE(name);
        DOCTEST_CAPTURE(decay);
        DOCTEST_CAPTURE(strided);
        train::OptimiserOptions options;
        options.optimiser = name;
        options.decay = decay;
        if (decay == "all" && name.starts_with("adam")) options.bias_correction = false;
        options.weight_decay = 0.3;
        options.epsilon = 1e-3;  // large enough to tell adam from adamw
        options.momentum = 0.9;
        const auto optimiser = train::make_optimiser(options, copy_of(problem, strided));
        run(*optimiser, problem, 0.5);
        const auto expected = reference(options, problem, 0.5);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto difference =
              (optimiser->weights()[i].second.detach().to(torch::kFloat64) - expected[i])
                  .abs()
                  .max();
          DOCTEST_CHECK(difference.item<double>() < 3e-6);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("on a device kernels, or torch's operators, follow the same formulas") {
  const Problem problem;
  const nn::CudaKernels emulated;
  for (const std::string name : {"adamw", "radam", "nag"}) {
    for (const bool kernels : {true, false}) {
      DOCTEST_CAPTURE(name);
      DOCTEST_CAPTURE(kernels);
      train::OptimiserOptions options;
      options.optimiser = name;
      options.momentum = 0.99;
      options.weight_decay = 0.3;
      const auto optimiser = train::make_optimiser(options, copy_of(problem, false));
      {
        const nn::AsDevice device(kernels ? &emulated : nullptr);
        run(*optimiser, problem, 0.5);
      }
      const auto expected = reference(options, problem, 0.5);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto w = optimiser->weights()[i].second.detach().to(torch::kFloat64);
        DOCTEST_CHECK((w - expected[i]).abs().max().item<double>() < 3e-6);
      }
    }
  }
}

DOCTEST_TEST_CASE("adamw is torch's AdamW") {
  const Problem problem;
  train::OptimiserOptions options;
  options.decay = "all";
  options.weight_decay = 0.1;
  const auto optimiser = train::make_optimiser(options, copy_of(problem, false));
  run(*optimiser, problem, 1);
  const auto weights = copy_of(problem, false);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : weights) tensors.push_back(tensor);
  torch::optim::AdamW torchs(tensors, torch::optim::AdamWOptions(0.01)
                                          .betas({options.beta1, options.beta2})
                                          .eps(options.epsilon)
                                          .weight_decay(0.1));
  for (std::size_t step = 0; step < std::size(kRates); ++step) {
    for (auto& group : torchs.param_groups()) group.options().set_lr(kRates[step]);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i].mutable_grad() = problem.gradients[step * tensors.size() + i].clone();
    torchs.step();
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    DOCTEST_CHECK(torch::allclose(optimiser->weights()[i].second, tensors[i], 1e-5, 1e-6));
}

DOCTEST_TEST_CASE("moments and numbers put into another optimiser go on to the same bits") {
  const Problem problem;
  for (const std::string name : {"adamw", "muon", "radam", "nag"}) {
    DOCTEST_CAPTURE(name);
    train::OptimiserOptions options;
    options.optimiser = name;
    options.momentum = 0.9;
    const auto whole = train::make_optimiser(options, copy_of(problem, false));
    run(*whole, problem, 1);
    const auto first = train::make_optimiser(options, copy_of(problem, false));
    run(*first, problem, 1, 0, 3);
    train::NamedWeights weights;
    for (const auto& [key, tensor] : first->weights())
      weights.emplace_back(key, tensor.detach().clone().requires_grad_());
    const auto second = train::make_optimiser(options, weights);
    second->restore([&](const std::string& moment) { return first->tensors().at(moment); });
    second->set_numbers(first->numbers());
    run(*second, problem, 1, 3);
    for (std::size_t i = 0; i < weights.size(); ++i)
      DOCTEST_CHECK(torch::equal(second->weights()[i].second, whole->weights()[i].second));
  }
}

DOCTEST_TEST_CASE("a weight without gradient is one with gradient zero") {
  const Problem problem;
  train::OptimiserOptions options;
  options.weight_decay = 0.5;
  const auto optimiser = train::make_optimiser(options, copy_of(problem, false));
  optimiser->step(0.1, torch::tensor(1.0));
  DOCTEST_CHECK(torch::allclose(optimiser->weights()[0].second, problem.start[0] * 0.95f));
  DOCTEST_CHECK(torch::equal(optimiser->weights()[2].second, problem.start[2]));
}

DOCTEST_TEST_CASE("the gradient's norm is that of all tensors together, whatever the threads") {
  const Problem problem;
  auto weights = copy_of(problem, false);
  double expected = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i].second.mutable_grad() = problem.gradients[i];
    expected += problem.gradients[i].to(torch::kFloat64).pow(2).sum().item<double>();
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = train::gradient_norm(weights);
  at::set_num_threads(2);
  const auto two = train::gradient_norm(weights);
  at::set_num_threads(threads);
  {
    const nn::AsDevice device;
    DOCTEST_CHECK(train::gradient_norm(weights).item<double>() ==
                  doctest::Approx(std::sqrt(expected)).epsilon(1e-5));
  }
  DOCTEST_CHECK(one.item<double>() == doctest::Approx(std::sqrt(expected)).epsilon(1e-12));
  DOCTEST_CHECK(torch::equal(one, two));
}

DOCTEST_TEST_CASE("muon follows its formula in double for the matrices of layers, else adamw") {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes = {
      {"transformer.h.0.mlp.c_fc.weight", {31, 12}},
      {"transformer.h.0.attn.c_proj.weight", {9, 22}}, {"lstm.weight_hh_l0", {8, 8}},
      {"transformer.wte.weight", {30, 6}}, {"lm_head.weight", {30, 6}},
      {"gla.h.0.mixer.convolution.weight", {12, 4}}, {"mosaic.h.0.memory_keys", {7, 5}},
      {"transformer.h.0.ln_1.weight", {12}}};
  constexpr std::size_t kMatrices = 3;
  torch::manual_seed(5);
  train::OptimiserOptions options;
  options.optimiser = "muon";
  options.momentum = 0.9, options.weight_decay = 0.3;
  train::NamedWeights weights, others;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    weights.emplace_back(shapes[i].first, torch::randn(shapes[i].second).requires_grad_());
    if (i >= kMatrices)
      others.emplace_back(shapes[i].first, weights[i].second.detach().clone().requires_grad_());
  }
  std::vector<DoubleRows> w, m;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    w.push_back(double_rows(weights[i].second));
    m.emplace_back(w[i].size(), std::vector<double>(w[i][0].size()));
  }
  const auto muon = train::make_optimiser(options, weights);
  options.optimiser = "adamw";
  const auto adamw = train::make_optimiser(options, others);
  for (const double lr : kRates) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto gradient = torch::randn_like(weights[i].second);
      weights[i].second.mutable_grad() = gradient;
      if (i >= kMatrices) {
        others[i - kMatrices].second.mutable_grad() = gradient.clone();
        continue;
      }
      DoubleRows ahead = double_rows(gradient);
      for (std::size_t r = 0; r < ahead.size(); ++r)
        for (std::size_t c = 0; c < ahead[0].size(); ++c) {
          const double g = 0.5 * ahead[r][c];
          m[i][r][c] = 0.9 * m[i][r][c] + g;
          ahead[r][c] = g + 0.9 * m[i][r][c];
        }
      const DoubleRows step = plain_newton_schulz(ahead);
      const double length =
          0.2 * std::sqrt(static_cast<double>(std::max(w[i].size(), w[i][0].size())));
      for (std::size_t r = 0; r < ahead.size(); ++r)
        for (std::size_t c = 0; c < ahead[0].size(); ++c)
          w[i][r][c] = w[i][r][c] * (1 - lr * 0.3) - lr * length * step[r][c];
    }
    muon->step(lr, torch::tensor(0.5));
    adamw->step(lr, torch::tensor(0.5));
  }
  for (std::size_t i = 0; i < kMatrices; ++i) {
    const DoubleRows found = double_rows(weights[i].second);
    double most = 0;
    for (std::size_t r = 0; r < found.size(); ++r)
      for (std::size_t c = 0; c < found[0].size(); ++c)
        most = std::max(most, std::abs(found[r][c] - w[i][r][c]));
    DOCTEST_CHECK(most < 3e-6);
    DOCTEST_CHECK(muon->tensors().count("velocity." + weights[i].first) == 1);
  }
  for (std::size_t i = 0; i < others.size(); ++i)
    DOCTEST_CHECK(torch::equal(weights[kMatrices + i].second, others[i].second));
  options.optimiser = "muon";
  DOCTEST_CHECK_THROWS_AS(train::make_optimiser(options, others), core::Error);
  const auto numbers = [&](const char* optimiser) {
    options.optimiser = optimiser;
    return train::moment_numbers(options, weights);
  };
  const std::int64_t matrices = 31 * 12 + 9 * 22 + 8 * 8;
  DOCTEST_CHECK(numbers("adamw") == 2 * numbers("nag"));
  DOCTEST_CHECK(numbers("muon") == numbers("adamw") - matrices);
}

DOCTEST_TEST_CASE("muon's direction has singular values near 1, and is 0 for a gradient of 0") {
  torch::manual_seed(7);
  for (const auto& shape : {std::vector<std::int64_t>{40, 64}, {64, 40}, {1, 9}}) {
    const auto direction = train::orthogonalised(torch::randn(shape));
    DOCTEST_REQUIRE(direction.sizes() == torch::IntArrayRef(shape));
    const auto small =
        shape[0] > shape[1] ? direction.t().mm(direction) : direction.mm(direction.t());
    const auto square = torch::linalg_eigvalsh(small);
    DOCTEST_CHECK(square.min().item<double>() > 0.4);
    DOCTEST_CHECK(square.max().item<double>() < 1.6);
  }
  DOCTEST_CHECK(train::orthogonalised(torch::zeros({3, 5})).abs().max().item<double>() == 0);
}

namespace {

// Six updates of a table of 40 rows by 7 that read few of them: which rows, each with its gradient.
struct TableProblem {
  Tensor start;
  std::vector<Tensor> rows, gradients;
  TableProblem() {
    torch::manual_seed(8);
    start = torch::randn({40, 7});
    for (const std::int64_t read : {5, 1, 9, 0, 12, 5}) {
      rows.push_back(std::get<0>(torch::randperm(40).slice(0, 0, read).sort()));
      gradients.push_back(torch::randn({read, 7}));
      if (read == 9) gradients.back()[4].zero_();  // named, but nothing depends on it
    }
  }
  Tensor sparse(std::size_t step) const {
    return nn::row_gradient(rows[step], gradients[step], start.sizes());
  }
};

// The formulas of optimiser.h in double, a row at a time: a row without gradient keeps all it has.
Tensor table_reference(
    const train::OptimiserOptions& o, const TableProblem& problem, double scale) {
  const auto doubles = problem.start.to(torch::kFloat64).clone();
  auto m = torch::zeros_like(doubles), v = torch::zeros_like(doubles);
  double before = -1;
  for (std::size_t step = 0; step < std::size(kRates); ++step) {
    const double lr = kRates[step], t = static_cast<double>(step) + 1;
    const double c1 = 1 - std::pow(o.beta1, t), c2 = 1 - std::pow(o.beta2, t);
    const double c = before < 0 ? 1 : before == 0 ? lr : lr / before;
    for (std::int64_t i = 0; i < problem.rows[step].size(0); ++i) {
      if (problem.gradients[step][i].abs().max().item<float>() == 0) continue;
      const auto r = problem.rows[step][i].item<std::int64_t>();
      for (std::int64_t j = 0; j < 7; ++j) {
        const double g = problem.gradients[step][i][j].item<double>() * scale;
        double w = doubles[r][j].item<double>(), mean = m[r][j].item<double>(),
               square = v[r][j].item<double>();
        w *= 1 - lr * o.weight_decay;
        if (o.optimiser == "nag") {
          w += o.momentum * o.momentum * c * mean - (1 + o.momentum) * lr * g;
          mean = o.momentum * c * mean - lr * g;
        } else {
          mean = o.beta1 * mean + (1 - o.beta1) * g;
          square = o.beta2 * square + (1 - o.beta2) * g * g;
          w -= lr * (mean / c1) / (std::sqrt(square / c2) + o.epsilon);
        }
        doubles[r][j] = w, m[r][j] = mean, v[r][j] = square;
      }
    }
    before = lr;
  }
  return doubles;
}

}  // namespace

DOCTEST_TEST_CASE("rows of a table that an update does not read keep weights and moments") {
  const TableProblem problem;
  const nn::CudaKernels emulated;
  for (const std::string name : {"adamw", "nag"}) {
    DOCTEST_CAPTURE(name);
    train::OptimiserOptions options;
    options.optimiser = name;
    options.momentum = 0.9, options.weight_decay = 0.3;
    const auto expected = table_reference(options, problem, 0.5);
    std::vector<Tensor> results;
    // A sparse gradient, a dense one, and dense ones of a device, with kernels and without.
    for (const int way : {0, 1, 2, 3}) {
      DOCTEST_CAPTURE(way);
      const train::NamedWeights weights = {
          {"transformer.memory_pool.values", problem.start.clone().requires_grad_()}};
      const auto optimiser = train::make_optimiser(options, weights);
      const auto steps = [&] {
        for (std::size_t step = 0; step < std::size(kRates); ++step) {
          const auto gradient = problem.sparse(step);
          Tensor(weights[0].second).mutable_grad() = way == 0 ? gradient : gradient.to_dense();
          optimiser->step(kRates[step], torch::tensor(0.5));
        }
      };
      if (way < 2) {
        steps();
      } else {
        const nn::AsDevice device(way == 2 ? &emulated : nullptr);
        steps();
      }
      results.push_back(weights[0].second.detach());
      const auto difference = results.back().to(torch::kFloat64) - expected;
      DOCTEST_CHECK(difference.abs().max().item<double>() < 3e-6);
    }
    DOCTEST_CHECK(torch::equal(results[0], results[1]));
  }
}

DOCTEST_TEST_CASE("the gradient's norm counts each row of a sparse gradient once, summed") {
  const TableProblem problem;
  const train::NamedWeights weights = {{"h.0.ngram.tables", problem.start.clone().requires_grad_()},
      {"h.0.ln.weight", torch::zeros({7}).requires_grad_()}};
  // As autograd adds two of them: rows twice.
  const auto twice = problem.sparse(2) + problem.sparse(4);
  Tensor(weights[0].second).mutable_grad() =
      at::_sparse_coo_tensor_unsafe(torch::cat({problem.rows[2], problem.rows[4]}).unsqueeze(0),
          torch::cat({problem.gradients[2], problem.gradients[4]}), problem.start.sizes());
  Tensor(weights[1].second).mutable_grad() = torch::full({7}, 2.0F);
  const double square = twice.to_dense().to(torch::kFloat64).pow(2).sum().item<double>() + 7 * 4.0;
  DOCTEST_CHECK(train::gradient_norm(weights).item<double>() ==
                doctest::Approx(std::sqrt(square)).epsilon(1e-6));
}
