// Transformer-XL, compared with its formula for any pattern of memories; the effect of a memory;
// the contents of State.

#include "nn/arch/transformer_xl.h"

#include <doctest/doctest.h>

#include <functional>

#include "core/error.h"
#include "plain_transformer_xl.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::gap;
using properties::Ids;
using properties::random_ids;
using properties::strong_model;

nn::ModelOptions xl_options(const std::string& layer_memory, std::int64_t layers = 2) {
  auto options = properties::small_options("transformer-xl");
  options.shape.layers = layers;
  options.layer_memory.layer_memory = layer_memory;
  return options;
}

nn::Hidden run(
    nn::Model& model, const std::vector<Ids>& segments, nn::State& state, bool detach = false) {
  std::vector<torch::Tensor> f, g;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto hidden = model.architecture->forward(batch_of({segments[i]}, i == 0), &state);
    if (detach) state.detach();
    f.push_back(hidden.output[0]);
    g.push_back(hidden.key[0]);
  }
  return {torch::cat(f), torch::cat(g)};
}

void check_against_formula(nn::Model& model, torch::ScalarType type, double close, bool detach) {
  model.to(type);
  const std::vector<Ids> segments = {random_ids(5, 1), random_ids(4, 2), random_ids(6, 3)};
  plain::Weights weights;
  for (const auto& [name, weight] : model.named_weights()) weights[name] = weight;
  nn::State state;
  const auto got = run(model, segments, state, detach);
  const auto want = plain::transformer_xl(model.options, weights, segments, detach);
  properties::check_same(model, got, {want.output, want.key}, close);
}

}  // namespace

DOCTEST_TEST_CASE("transformer-xl equals its formula in values and gradients, for any memories") {
  using Change = std::function<void(nn::ModelOptions&)>;
  const std::vector<Change> changes = {
      [](auto&) {},
      [](auto& o) { o.layer_memory.layer_memory = "0,3"; },
      [](auto& o) { o.layer_memory.layer_memory = "7,2"; },
      [](auto& o) { o.layer_memory.layer_memory = "none"; },
      [](auto& o) { o.transformer.norm = "post"; },
      [](auto& o) { o.transformer_xl.clamp_length = 4; },
      [](auto& o) { o.transformer_xl.shared_biases = false; },
      [](auto& o) { o.layer_memory.layer_memory = "5,2", o.layer_memory.same_length = "on"; },
      [](auto& o) { o.shape.memory_key = "output"; },
      [](auto& o) {
        o.vocabulary.cutoffs = {3, 8}, o.vocabulary.factor = 2;
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    DOCTEST_CAPTURE(i);
    auto options = xl_options("20");
    changes[i](options);
    const auto model = strong_model(options);
    check_against_formula(*model, torch::kFloat64, 1e-10, i % 2 == 1);
    check_against_formula(*model, torch::kFloat32, 1e-5, i % 2 == 1);
  }
}

DOCTEST_TEST_CASE("attention with dropout goes the long way to the same result") {
  auto options = xl_options("3,6");
  options.shape.attention_dropout = 1e-12;  // in effect none, but not zero
  const auto model = strong_model(options);
  const std::vector<Ids> segments = {random_ids(5, 1), random_ids(4, 2)};
  nn::State a, b;
  const auto expected = run(*model, segments, a);
  model->train();
  const auto got = run(*model, segments, b);
  DOCTEST_CHECK(gap(got.output, expected.output) < 1e-10);
}

DOCTEST_TEST_CASE("attention in blocks of queries equals attention as a whole") {
  struct Shape {
    std::int64_t queries, slots, before;
    bool holes;  // the rows begin at different slots
  };
  for (const auto& [queries, slots, before, holes] : std::vector<Shape>{{150, 210, -1, false},
           {1, 40, -1, true}, {70, 70, 9, false}, {129, 300, 100, true}, {64, 128, -1, true}}) {
    torch::manual_seed(2);
    const auto leaf = [&](torch::IntArrayRef sizes) {
      return torch::randn(sizes, torch::kFloat64);
    };
    const std::vector<torch::Tensor> exact = {leaf({2, queries, 3, 5}), leaf({2, queries, 3, 5}),
        leaf({2, slots, 2, 3, 5}), leaf({slots, 3, 5})};
    const auto weight = leaf({2, queries, 3, 5});
    nn::KeyVisibility visibility;
    visibility.before = before;
    if (holes) visibility.first = torch::tensor({0L, std::min<std::int64_t>(31, slots - queries)});
    const auto results = [&](torch::ScalarType type) {
      std::vector<torch::Tensor> in, out;
      for (const auto& tensor : exact)
        in.push_back(tensor.to(type, false, /*copy=*/true).set_requires_grad(true));
      const auto y = nn::relative_attend(in[0], in[1], in[2], in[3], visibility, 0);
      (y * weight.to(type)).sum().backward();
      out.push_back(y.detach());
      for (const auto& tensor : in) out.push_back(tensor.grad());
      return out;
    };
    const auto blocks = results(torch::kFloat32), whole = results(torch::kFloat64);
    DOCTEST_CAPTURE(queries);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(gap(blocks[i].to(torch::kFloat64), whole[i]) < 2e-5);
    }
  }
}

DOCTEST_TEST_CASE("memories that hold all before make one long segment of many") {
  const torch::NoGradGuard no_grad;
  const auto model = strong_model(xl_options("9,12,40", 3));
  const auto ids = random_ids(18, 7);
  const auto whole = model->architecture->forward(batch_of({ids}), nullptr);
  nn::State state;
  const auto parts =
      run(*model, {Ids(ids.begin(), ids.begin() + 9), Ids(ids.begin() + 9, ids.end())}, state);
  DOCTEST_CHECK(gap(parts.output, whole.output[0]) < 1e-10);
  // A memory that is one token shorter does not.
  const auto shorter = strong_model(xl_options("8,12,40", 3));
  nn::State other;
  const auto less =
      run(*shorter, {Ids(ids.begin(), ids.begin() + 9), Ids(ids.begin() + 9, ids.end())}, other);
  DOCTEST_CHECK(gap(less.output, whole.output[0]) > 1e-6);
}

DOCTEST_TEST_CASE("without any length a State changes nothing") {
  const torch::NoGradGuard no_grad;
  const auto model = strong_model(xl_options("none"));
  const auto a = random_ids(6, 1), b = random_ids(6, 2);
  nn::State state;
  const auto carried = run(*model, {a, b}, state);
  const auto alone = model->architecture->forward(batch_of({b}), nullptr);
  DOCTEST_CHECK(gap(carried.output.narrow(0, 6, 6), alone.output[0]) == 0.0);
}

DOCTEST_TEST_CASE("with same-length a text is read alike however it is cut") {
  const torch::NoGradGuard no_grad;
  auto options = xl_options("5,3");
  options.layer_memory.same_length = "on";
  const auto model = strong_model(options);
  const auto ids = random_ids(17, 4);
  const auto whole = model->architecture->forward(batch_of({ids}), nullptr);
  for (const std::int64_t size : {1, 3, 8}) {
    std::vector<Ids> parts;
    for (std::int64_t at = 0; at < 17; at += size)
      parts.emplace_back(ids.begin() + at, ids.begin() + std::min<std::int64_t>(17, at + size));
    nn::State state;
    DOCTEST_CAPTURE(size);
    DOCTEST_CHECK(gap(run(*model, parts, state).output, whole.output[0]) < 1e-10);
  }
}

DOCTEST_TEST_CASE("State holds the sum of the lengths, not the longest times the layers") {
  const torch::NoGradGuard no_grad;
  const auto model = strong_model(xl_options("long=40 short=2 place=interleaved:2", 6));
  const std::int64_t tokens = 2 * 40 + 4 * 2, rows = 2, d = 8;
  // Inputs in training; keys and values when weights do not change.
  for (const bool training : {true, false}) {
    model->train(training);
    nn::State state;
    for (int i = 0; i < 9; ++i)
      model->architecture->forward(batch_of({random_ids(7, 1), random_ids(7, 2)}, i == 0), &state);
    DOCTEST_CHECK(state.bytes() == rows * (tokens * d * (training ? 1 : 2) + 1) * 8);
  }
}

DOCTEST_TEST_CASE(
    "kept keys, values and positions change nothing, and do not outlive their weights") {
  const auto model = strong_model(xl_options("5,30", 2));
  std::vector<Ids> tokens;
  for (int i = 0; i < 50; ++i) tokens.push_back(random_ids(1, static_cast<std::uint64_t>(i)));
  const auto check = [&] {
    nn::State kept, made;
    const auto anew = run(*model, tokens, made, /*detach=*/true);  // with gradient nothing is kept
    const torch::NoGradGuard no_grad;
    const auto got = run(*model, tokens, kept);
    DOCTEST_CHECK(kept.bytes() > made.bytes());
    DOCTEST_CHECK(gap(got.output, anew.output) < 1e-12);
    DOCTEST_CHECK(gap(got.key, anew.key) < 1e-12);
  };
  check();
  model->architecture->set_reach({"9", 3, "on"});
  check();
  model->train();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, weight] : model->named_weights()) torch::Tensor(weight).mul_(1.1);
  }
  model->eval();
  check();
}

DOCTEST_TEST_CASE("other lengths at test: longer, shorter, none; and back") {
  const torch::NoGradGuard no_grad;
  const auto model = strong_model(xl_options("4"));
  const std::vector<Ids> segments = {random_ids(6, 1), random_ids(6, 2), random_ids(6, 3)};
  const auto values = [&](nn::Model& of) {
    nn::State state;
    return run(of, segments, state).output;
  };
  const auto first = values(*model);
  for (const std::string lengths : {"30", "2", "none"}) {
    DOCTEST_CAPTURE(lengths);
    model->architecture->set_reach({lengths, -1, ""});
    DOCTEST_CHECK(gap(values(*model), values(*strong_model(xl_options(lengths)))) == 0.0);
    DOCTEST_CHECK(gap(values(*model), first) > 1e-6);
  }
  model->architecture->set_reach({"4", 0, "off"});
  DOCTEST_CHECK(gap(values(*model), first) == 0.0);
}

DOCTEST_TEST_CASE("bad options are refused by name") {
  const auto refusal = [](auto change) -> std::string {
    auto options = xl_options("4");
    change(options);
    return properties::refusal(options);
  };
  DOCTEST_CHECK(
      refusal([](auto& o) { o.layer_memory.layer_memory = "1,2,3"; }).find("layer-memory") == 0);
  DOCTEST_CHECK(
      refusal([](auto& o) { o.layer_memory.same_length = "yes"; }).find("same-length") == 0);
  DOCTEST_CHECK(refusal([](auto& o) { o.shape.heads = 3; }).find("heads") == 0);
  const auto plain = strong_model(properties::small_options());
  DOCTEST_CHECK_THROWS_AS(plain->architecture->set_reach({"4", -1, ""}), core::Error);
}
