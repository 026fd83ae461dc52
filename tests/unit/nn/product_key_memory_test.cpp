// Product-key memories, and the sums of gathered rows in them: values and gradients compared with
// plain loops in float64.

#include "nn/layers/block_stack.h"

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "nn/ops/gathered_sum.h"
#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

Tensor normal_leaf(torch::IntArrayRef sizes) {
  return torch::randn(sizes, torch::kFloat64).set_requires_grad(true);
}

Tensor gathered_written_out(const Tensor& values, const Tensor& rows, const Tensor& weights) {
  std::vector<Tensor> sums;
  for (std::int64_t t = 0; t < rows.size(0); ++t) {
    auto sum = torch::zeros({values.size(1)}, values.options());
    for (std::int64_t j = 0; j < rows.size(1); ++j)
      sum = sum + weights[t][j] * values[rows[t][j].item<std::int64_t>()];
    sums.push_back(sum);
  }
  return torch::stack(sums);
}

nn::ProductKeyShape small_keys(bool gated) {
  return {.d = 6, .heads = 2, .keys = 5, .top_k = 3, .d_key = 8, .gated = gated};
}

// A memory in float64 whose parts all have an effect.
std::shared_ptr<nn::ProductKeyMemory> strong_keys(
    const nn::ProductKeyShape& shape, std::shared_ptr<nn::ValuePool> pool = nullptr) {
  auto memory = std::make_shared<nn::ProductKeyMemory>(shape, std::move(pool));
  memory->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  for (auto& weight : memory->parameters()) weight.normal_(weight.dim() == 1 ? 1 : 0, 0.7);
  return memory;
}

// Scores all n^2 keys of a head, one token at a time.
Tensor keys_written_out(
    const nn::ProductKeyShape& shape, const properties::Weights& weights, const Tensor& x) {
  const auto weight = [&](const char* name) { return weights[name]; };
  const auto n = shape.keys, half = shape.d_key / 2;
  std::vector<Tensor> out;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    auto y = torch::zeros({shape.d}, x.options());
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      auto q = weight("c_q.weight").slice(0, h * shape.d_key, (h + 1) * shape.d_key).mv(x[t]);
      q = q / (q.pow(2).mean() + 1e-6).sqrt() * weight("norm_q.weight");
      const auto keys = weight("keys")[h];
      std::vector<std::pair<double, std::int64_t>> order;
      std::vector<Tensor> scores;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          scores.push_back(
              keys[0][i].dot(q.slice(0, 0, half)) + keys[1][j].dot(q.slice(0, half, 2 * half)));
          order.emplace_back(-scores.back().item<double>(), i * n + j);
        }
      std::sort(order.begin(), order.end());
      Tensor total = torch::zeros({}, x.options()), sum = torch::zeros_like(y);
      for (std::int64_t k = 0; k < shape.top_k; ++k) {
        const auto row = order[static_cast<std::size_t>(k)].second;
        const auto mass = scores[static_cast<std::size_t>(row)].exp();
        total = total + mass;
        sum = sum + mass * weight("pool.values")[row];
      }
      y = y + sum / total;
    }
    if (shape.gated) {
      const auto z = weight("c_gate.weight").mv(x[t]);
      y = weight("c_proj.weight").mv(y * z / (1 + (-z).exp()));
    }
    out.push_back(y);
  }
  return torch::stack(out);
}

}  // namespace

DOCTEST_TEST_CASE("sums of gathered rows: values and gradients, on the CPU and by operators") {
  torch::manual_seed(3);
  const auto check = [&] {
    for (const auto& [tokens, entries] : {std::pair<int, int>{1, 1}, {7, 5}, {40, 3}}) {
      const auto values = normal_leaf({11, 4}), weights = normal_leaf({tokens, entries}),
                 direction = torch::randn({tokens, 4}, torch::kFloat64);
      const auto rows = torch::randint(2, 9, {tokens, entries}, torch::kInt64);  // some twice
      const auto results = [&](const auto& sum) {
        const auto y = sum(values, rows, weights);
        auto all = torch::autograd::grad({(y * direction).sum()}, {values, weights});
        DOCTEST_CHECK((!all[0].is_sparse() || all[0]._values().size(0) < 11));
        for (auto& each : all) each = each.to_dense();
        all.push_back(y.detach());
        return all;
      };
      const auto got = results(nn::gathered_sum), want = results(gathered_written_out);
      for (std::size_t i = 0; i < got.size(); ++i) DOCTEST_CHECK(gap(got[i], want[i]) < 1e-12);
      DOCTEST_CHECK(got[0].slice(0, 0, 2).abs().max().item<double>() == 0);  // unused rows
    }
  };
  check();
  const nn::AsDevice device;
  check();
}

DOCTEST_TEST_CASE("reads of a table's rows are counted in its own scope") {
  torch::manual_seed(6);
  const auto values = torch::randn({9, 4}), other = torch::randn({9, 4});
  const auto rows = torch::randint(9, {20, 3}, torch::kInt64);
  const auto weights = torch::ones({20, 3});
  const std::vector<Tensor> tables = {values}, counts = {torch::zeros({9}, torch::kInt64)};
  nn::gathered_sum(values, rows, weights);
  {
    const nn::RowReads counting(tables, counts);
    nn::gathered_sum(values, rows, weights);
    nn::gathered_sum(other, rows, weights);
    {
      const std::vector<Tensor> inner = {counts[0].clone()};
      const nn::RowReads nested(tables, inner);
      nn::gathered_sum(values, rows, weights);
    }
    nn::gathered_sum(values, rows, weights);
  }
  nn::gathered_sum(values, rows, weights);
  for (std::int64_t row = 0; row < 9; ++row)
    DOCTEST_CHECK(
        counts[0][row].item<std::int64_t>() == 2 * (rows == row).sum().item<std::int64_t>());
}

DOCTEST_TEST_CASE("the gradient of gathered rows has the same bits for any number of threads") {
  torch::manual_seed(4);
  const auto values = torch::randn({50, 33}).set_requires_grad(true),
             weights = torch::randn({400, 16}).set_requires_grad(true);
  const auto rows = torch::randint(50, {400, 16}, torch::kInt64);
  const int threads = at::get_num_threads();
  std::vector<std::vector<Tensor>> found;
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    const auto y = nn::gathered_sum(values, rows, weights);
    found.push_back(torch::autograd::grad({y.sin().sum()}, {values, weights}));
    found.back()[0] = found.back()[0].to_dense();
  }
  at::set_num_threads(threads);
  DOCTEST_CHECK(torch::equal(found[0][0], found[1][0]));
  DOCTEST_CHECK(torch::equal(found[0][1], found[1][1]));
}

DOCTEST_TEST_CASE("a memory with product keys finds the best of all pairs: values and gradients") {
  for (const bool gated : {true, false}) {
    DOCTEST_CAPTURE(gated);
    torch::manual_seed(11);
    const auto shape = small_keys(gated);
    const auto memory = strong_keys(shape);
    const auto x = normal_leaf({9, 6}), direction = torch::randn({9, 6}, torch::kFloat64);
    const auto weights = memory->named_parameters();
    std::vector<Tensor> inputs = {x};
    for (const auto& item : weights) inputs.push_back(item.value());
    const auto results = [&](const Tensor& y) {
      auto all = torch::autograd::grad({(y * direction).sum()}, inputs);
      for (auto& each : all) each = each.to_dense();
      all.push_back(y.detach());
      return all;
    };
    const auto got = results(memory->forward(x.view({3, 3, 6})).flatten(0, 1)),
               want = results(keys_written_out(shape, weights, x));
    DOCTEST_CHECK(got.size() == (gated ? 8 : 6));
    for (std::size_t i = 0; i < got.size(); ++i) {
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(gap(got[i], want[i]) < 1e-10);
    }
    // Also by differences in the direction of each.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      DOCTEST_CAPTURE(i);
      constexpr double kStep = 1e-6;
      const torch::NoGradGuard no_grad;
      const auto way = torch::randn_like(inputs[i]);
      const auto at = [&](double step) {
        inputs[i].add_(way, step);
        const auto loss = (memory->forward(x) * direction).sum().item<double>();
        inputs[i].sub_(way, step);
        return loss;
      };
      const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
      DOCTEST_CHECK(slope == doctest::Approx((got[i] * way).sum().item<double>()).epsilon(1e-5));
    }
  }
}

DOCTEST_TEST_CASE(
    "memories that share a pool have one table, whose gradient is the sum of theirs") {
  torch::manual_seed(12);
  const auto shape = small_keys(true);
  const auto pool = std::make_shared<nn::ValuePool>(shape);
  pool->to(torch::kFloat64);
  const auto a = strong_keys(shape, pool), b = strong_keys(shape, pool);
  {
    const torch::NoGradGuard no_grad;
    pool->values.normal_();
  }
  DOCTEST_CHECK(a->parameters().size() == 5);  // without the values
  const auto x = torch::randn({4, 6}, torch::kFloat64);
  const auto gradient = [&](const Tensor& y) {
    return torch::autograd::grad({y.sum()}, {pool->values})[0].to_dense();
  };
  const auto both = gradient(a->forward(x) + b->forward(x));
  DOCTEST_CHECK(gap(both, gradient(a->forward(x)) + gradient(b->forward(x))) < 1e-12);
}

DOCTEST_TEST_CASE("padding reads no row: a batch reads what its rows without padding read") {
  const auto pad = properties::kPad;
  const std::vector<properties::Ids> rows = {
      {3, 1, 4, 1, 5, 9}, {2, 6, pad, pad, pad, pad}, {pad, 5, pad, 3, 5, pad}};
  for (const auto& arch : nn::architecture_names())
    for (const std::string kind : {"product-key", "ngram"}) {
      if (!nn::arch_facts(arch).product_keys) continue;
      if (kind == "ngram" && arch != "transformer") continue;
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(kind);
      auto options = properties::small_options(arch);
      options.memory_layer.kind = kind, options.memory_layer.rows = 50;
      options.memory_layer.keys = 6, options.memory_layer.top_k = 2;
      const auto model = properties::strong_model(options);
      std::vector<Tensor> tables;
      for (const auto& [name, weight] : model->named_weights())
        if (name.ends_with("pool.values") || name.ends_with("ngram.tables"))
          tables.push_back(weight);
      DOCTEST_REQUIRE(tables.size() == 1);
      const auto reads = [&](const std::vector<properties::Ids>& of) {
        const torch::NoGradGuard no_grad;
        const std::vector<Tensor> counts = {torch::zeros({tables[0].size(0)}, torch::kInt64)};
        const nn::RowReads counting(tables, counts);
        model->architecture->forward(properties::batch_of(of), nullptr);
        return counts[0];
      };
      auto alone = torch::zeros({tables[0].size(0)}, torch::kInt64);
      for (const auto& row : rows) {
        properties::Ids real;
        std::ranges::copy_if(row, std::back_inserter(real), [&](auto id) { return id != pad; });
        alone += reads({real});
      }
      DOCTEST_CHECK(alone.sum().item<std::int64_t>() > 0);
      DOCTEST_CHECK(reads(rows).equal(alone));
    }
}
