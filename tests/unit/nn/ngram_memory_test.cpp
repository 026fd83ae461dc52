// Memories of hashed n-grams: hash, values and gradients compared with plain loops in float64;
// texts cut anywhere, padded and continued.

#include "nn/layers/ngram_memory.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "properties.h"

namespace {

using properties::gap;
using properties::Ids;
using torch::Tensor;

// The header's formula in unsigned numbers. ids[t - i] for i < n, the newest last.
std::int64_t plain_ngram_row(const Ids& ids, std::int64_t t, std::int64_t n, std::int64_t head,
    std::int64_t layer, std::int64_t rows) {
  std::uint64_t g = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto c = static_cast<std::uint64_t>(((4 * layer + n) * 1024 + head) * 4 + i);
    std::uint64_t z = (c + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z = (z ^ (z >> 31)) | 1;
    const std::int64_t id = t >= i ? ids[static_cast<std::size_t>(t - i)] : -1;
    g ^= static_cast<std::uint64_t>(id + 1) * z;
  }
  return static_cast<std::int64_t>(
      ((g ^ (g >> 32)) & 0x7FFFFFFFFFFFFFFFULL) % static_cast<std::uint64_t>(rows));
}

Tensor rms_normed(const Tensor& x, const Tensor& weight) {
  return x / (x.pow(2).mean() + 1e-6).sqrt() * weight;
}

// Returns y of one row of text, x (T, d), one token at a time.
Tensor ngrams_written_out(const nn::NgramShape& shape, const properties::Weights& weights,
    const Ids& ids, const Tensor& x) {
  const auto heads = shape.heads, rows = shape.rows;
  std::vector<Tensor> v, n, y;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    std::vector<Tensor> parts;
    for (const std::int64_t order : {2, 3})
      for (std::int64_t h = 0; h < heads; ++h)
        parts.push_back(weights["tables"][((order - 2) * heads + h) * rows +
                                          plain_ngram_row(ids, t, order, h, shape.layer, rows)]);
    const auto e = torch::cat(parts), k = weights["c_key.weight"].mv(e);
    const auto score =
        rms_normed(x[t], weights["norm_q.weight"]).dot(rms_normed(k, weights["norm_k.weight"])) /
        std::sqrt(static_cast<double>(shape.d));
    v.push_back(weights["c_value.weight"].mv(e) / (1 + (-score).exp()));
    n.push_back(rms_normed(v.back(), weights["norm_v.weight"]));
    auto z = torch::zeros_like(v.back());
    for (std::int64_t tap = 0; tap < 4; ++tap)
      if (const auto at = t - 3 * (3 - tap); at >= 0)
        z = z + weights["convolution.weight"].select(1, tap) * n[static_cast<std::size_t>(at)];
    y.push_back(z / (1 + (-z).exp()) + v.back());
  }
  return torch::stack(y);
}

constexpr nn::NgramShape kNgramShape = {.d = 6, .heads = 2, .rows = 11, .width = 4, .layer = 1};

std::shared_ptr<nn::NgramMemory> strong_ngrams() {
  auto memory = std::make_shared<nn::NgramMemory>(kNgramShape);
  memory->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  for (auto& weight : memory->parameters()) weight.normal_(weight.dim() == 1 ? 1 : 0, 0.7);
  return memory;
}

}  // namespace

DOCTEST_TEST_CASE("rows of pairs and triples follow the hash of the header, of any ids") {
  const Ids ids = {5, 0, 4000000000, 12, 12, 12, 1, 5, 0};
  auto tokens = torch::zeros({1, 11}, torch::kInt64);
  for (std::size_t t = 0; t < ids.size(); ++t)
    tokens[0][static_cast<std::int64_t>(t) + 2] = ids[t] + 1;
  for (const std::int64_t rows : {1, 7, 16384, 1000000000}) {
    nn::NgramShape shape = kNgramShape;
    shape.rows = rows, shape.heads = 3, shape.layer = 9;
    const auto found = nn::ngram_rows(tokens, shape);
    DOCTEST_REQUIRE(found.sizes() == torch::IntArrayRef({1, 9, 6}));
    for (std::int64_t t = 0; t < 9; ++t)
      for (std::int64_t j = 0; j < 6; ++j)
        DOCTEST_CHECK(found[0][t][j].item<std::int64_t>() ==
                      plain_ngram_row(ids, t, 2 + j / 3, j % 3, 9, rows));
  }
  // Hashes are stable: a model finds its rows on any machine and in later versions.
  DOCTEST_CHECK(plain_ngram_row({3, 1, 4}, 2, 3, 0, 0, 1000003) == 625298);
}

DOCTEST_TEST_CASE("a memory of n-grams is the formulas of its paper: values and gradients") {
  torch::manual_seed(21);
  const auto memory = strong_ngrams();
  const auto ids = properties::random_ids(14, 3);
  const auto batch = properties::batch_of({properties::random_ids(14, 4), ids});
  const auto x = torch::randn({2, 14, 6}, torch::kFloat64).set_requires_grad(true),
             direction = torch::randn({14, 6}, torch::kFloat64);
  const auto weights = memory->named_parameters();
  std::vector<Tensor> inputs = {x};
  for (const auto& item : weights) inputs.push_back(item.value());
  const auto results = [&](const Tensor& y) {
    auto all = torch::autograd::grad({(y * direction).sum()}, inputs);
    for (auto& each : all) each = each.to_dense();
    all.push_back(y.detach());
    return all;
  };
  const auto forward = [&] {
    nn::NgramCall call(batch, nullptr);
    return memory->forward(x, call, "a")[1];
  };
  const auto got = results(forward()),
             want = results(ngrams_written_out(kNgramShape, weights, ids, x[1]));
  DOCTEST_CHECK(got.size() == 9);
  for (std::size_t i = 0; i < got.size(); ++i) {
    DOCTEST_CAPTURE(i);
    DOCTEST_CHECK(gap(got[i], want[i]) < 1e-10);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    DOCTEST_CAPTURE(i);
    constexpr double kStep = 1e-6;
    const torch::NoGradGuard no_grad;
    const auto way = torch::randn_like(inputs[i]);
    const auto at = [&](double step) {
      inputs[i].add_(way, step);
      const auto loss = (forward() * direction).sum().item<double>();
      inputs[i].sub_(way, step);
      return loss;
    };
    const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
    DOCTEST_CHECK(slope == doctest::Approx((got[i] * way).sum().item<double>()).epsilon(1e-5));
  }
}

DOCTEST_TEST_CASE("cut anywhere and padded, a text's n-grams are those of the whole text") {
  torch::manual_seed(22);
  const auto memory = strong_ngrams();
  const auto ids = properties::random_ids(20, 5);
  const auto x = torch::randn({1, 20, 6}, torch::kFloat64);
  nn::NgramCall whole(properties::batch_of({ids}), nullptr);
  const auto want = memory->forward(x, whole, "a");
  for (const std::vector<std::int64_t>& cuts :
      {std::vector<std::int64_t>{1, 2, 3, 20}, {5, 20}, {19, 20}, {7, 7, 8, 20}}) {
    nn::State state;
    std::vector<Tensor> parts;
    std::int64_t begin = 0;
    for (const auto end : cuts) {
      // A row with padding inside, and another row.
      Ids row(ids.begin() + begin, ids.begin() + end);
      row.insert(row.begin() + (end - begin) / 2, properties::kPad);
      const auto batch =
          properties::batch_of({row, properties::random_ids(std::ssize(row), 6)}, begin == 0);
      if (begin == 0) state.reset(batch.fresh);
      auto part = x.slice(1, begin, end);
      const auto middle = (end - begin) / 2;
      part = torch::cat({part.slice(1, 0, middle), torch::full({1, 1, 6}, 9.0, x.options()),
                            part.slice(1, middle)},
          1);
      nn::NgramCall call(batch, &state);
      const auto y = memory->forward(part.expand({2, -1, -1}), call, "a")[0];
      parts.push_back(y.slice(0, 0, middle));
      parts.push_back(y.slice(0, middle + 1));
      begin = end;
    }
    DOCTEST_CHECK(gap(torch::cat(parts), want[0]) < 1e-12);
  }
}

DOCTEST_TEST_CASE("a transformer with n-grams whose convolution has learned holds every property") {
  auto options = properties::small_options();
  options.memory_layer.kind = "ngram";
  options.memory_layer.layers = {1, 2}, options.memory_layer.heads = 2;
  options.memory_layer.rows = 13;
  const auto model = properties::strong_model(options);
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters())
      if (item.key().find("convolution") != std::string::npos) item.value().normal_(0, 0.7);
  }
  properties::check_causality(*model);
  properties::check_streaming(*model);
  properties::check_padding(*model);
  properties::check_rows(*model);
  properties::check_gradient_through_state(*model);
  properties::check_padding_gradient(*model);
}
