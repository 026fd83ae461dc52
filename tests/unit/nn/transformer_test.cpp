// The transformer, compared with the plain one, option by option; its limits; forgetting.

#include <doctest/doctest.h>

#include "nn/layers/attention.h"
#include "plain_transformer.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using properties::small_options;
using properties::strong_model;

plain::Weights weights_of(const nn::Model& model) {
  plain::Weights weights;
  for (const auto& [name, weight] : model.named_weights()) weights[name] = weight;
  return weights;
}

void check_against_plain(nn::Model& model, torch::ScalarType type, double close) {
  model.to(type);
  const auto ids = random_ids(7, 20);
  const auto hidden = model.architecture->forward(batch_of({ids}), nullptr);
  const auto expected = plain::transformer(model.options, weights_of(model), ids);
  properties::check_same(
      model, {hidden.output[0], hidden.key[0]}, {expected.output, expected.key}, close);
}

template <class F> std::string error_of(core::Code code, F&& f) {
  try {
    f();
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == code);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

DOCTEST_TEST_CASE("a watcher sees what the last token attends to, whole or from call to call") {
  const torch::NoGradGuard no_grad;
  for (const auto* const positions : {"learned", "rope", "alibi"}) {
    auto options = small_options();
    options.transformer.positions = positions;
    options.transformer.kv_heads = 1;
    const auto model = strong_model(options);
    const auto ids = random_ids(7, 20);
    const auto expected = plain::transformer(options, weights_of(*model), ids).last;
    auto& watched = dynamic_cast<nn::WatchedAttention&>(*model->architecture);
    for (const std::size_t cut : {0, 3, 6}) {
      nn::State state;
      const std::vector<properties::Ids> first = {{ids.begin(), ids.begin() + cut}};
      if (cut > 0) model->architecture->forward(batch_of(first), &state);
      std::vector<torch::Tensor> seen;
      watched.watch([&](const torch::Tensor& weights) { seen.push_back(weights); });
      model->architecture->forward(
          batch_of({{ids.begin() + cut, ids.end()}}, cut == 0), cut > 0 ? &state : nullptr);
      watched.watch({});
      DOCTEST_CAPTURE(positions);
      DOCTEST_REQUIRE(seen.size() == expected.size());
      for (std::size_t i = 0; i < seen.size(); ++i)
        DOCTEST_CHECK((seen[i][0] - expected[i]).abs().max().item<double>() < 1e-10);
    }
  }
}

DOCTEST_TEST_CASE(
    "the transformer equals the plain one in values and gradients, for every option") {
  using Change = std::function<void(nn::ModelOptions&)>;
  const std::vector<Change> changes = {
      [](auto&) {},
      [](auto& o) { o.transformer.positions = "sinusoidal"; },
      [](auto& o) { o.transformer.positions = "rope"; },
      [](auto& o) { o.transformer.positions = "alibi"; },
      [](auto& o) { o.transformer.positions = "none"; },
      [](auto& o) { o.transformer.norm = "post"; },
      [](auto& o) { o.transformer.activation = "relu"; },
      [](auto& o) { o.transformer.activation = "gelu-exact"; },
      [](auto& o) { o.transformer.final_norm = false; },
      [](auto& o) { o.transformer.bias = false; },
      [](auto& o) { o.transformer.norm_epsilon = 0.1; },
      [](auto& o) { o.vocabulary.scale_embedding = true; },
      [](auto& o) { o.shape.memory_key = "output"; },
      [](auto& o) { o.shape.d_ff = 0; },
      [](auto& o) {
        o.vocabulary.cutoffs = {3, 8}, o.vocabulary.factor = 2;
      },
      [](auto& o) { o.transformer.norm_kind = "rms"; },
      [](auto& o) { o.transformer.norm = "sublayer"; },
      [](auto& o) { o.transformer.norm = "sandwich"; },
      [](auto& o) { o.transformer.norm = "parallel"; },
      [](auto& o) { o.transformer.activation = "silu"; },
      [](auto& o) { o.transformer.feed_forward = "gated"; },
      [](auto& o) { o.transformer.kv_heads = 1; },
      [](auto& o) { o.transformer.d_head = 6; },
      [](auto& o) { o.transformer.d_head = 2; },
      [](auto& o) { o.transformer.bias_of = {"qkv"}; },
      [](auto& o) {
        o.transformer.bias_of = {"output", "norm"};
      },
      [](auto& o) { o.transformer.bias_of = {"feed-forward"}; },
      [](auto& o) { o.transformer.qk_norm = "head", o.transformer.positions = "rope"; },
      [](auto& o) { o.transformer.qk_norm = "whole", o.transformer.kv_heads = 1; },
      [](auto& o) { o.transformer.attention_window = {3}; },
      [](auto& o) {
        o.transformer.attention_window = {0, 2}, o.transformer.positions = "alibi";
      },
      [](auto& o) {
        o.transformer.positions = "rope", o.transformer.rope.theta = 50, o.transformer.d_head = 12;
      },
      [](auto& o) {
        o.transformer.positions = "rope", o.transformer.d_head = 12;
        o.transformer.rope.share = 0.5;
      },
      [](auto& o) {
        o.transformer.positions = "rope", o.transformer.d_head = 12;
        o.transformer.rope.scaling = "linear", o.transformer.rope.factor = 4;
      },
      [](auto& o) {  // pairs that are unchanged, scaled and between
        o.transformer.positions = "rope", o.transformer.d_head = 12;
        o.transformer.rope = {.theta = 100, .scaling = "llama3", .factor = 8, .trained = 64};
      },
      [](auto& o) {
        o.transformer.positions = "rope", o.transformer.d_head = 12;
        o.transformer.rope = {.theta = 100, .scaling = "yarn", .factor = 8, .trained = 300};
      },
      [](auto& o) { o.transformer.norm_kind = "rms-one"; },
      [](auto& o) { o.transformer.attention_scale = 0.7; },
      [](auto& o) { o.transformer.attention_softcap = 0.5; },
      [](auto& o) {
        o.transformer.positions = "rope", o.transformer.d_head = 12;
        o.transformer.attention_window = {3, 0};
        o.transformer.rope = {.theta = 100, .scaling = "linear", .factor = 4, .local_theta = 20};
      },
      [](auto& o) {  // Gemma 2's
        o.transformer.norm = "sandwich", o.transformer.positions = "rope";
        o.transformer.norm_kind = "rms-one", o.transformer.feed_forward = "gated";
        o.transformer.bias = false, o.transformer.kv_heads = 1, o.vocabulary.scale_embedding = true;
        o.transformer.attention_window = {4, 0}, o.transformer.attention_softcap = 2;
        o.transformer.attention_scale = 0.4, o.transformer.qk_norm = "head";
      },
      [](auto& o) {  // Llama's
        o.transformer.positions = "rope", o.transformer.norm_kind = "rms";
        o.transformer.feed_forward = "gated", o.transformer.activation = "silu";
        o.transformer.bias = false, o.transformer.kv_heads = 1, o.vocabulary.tied = false;
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    DOCTEST_CAPTURE(i);
    auto options = small_options();
    changes[i](options);
    const auto model = strong_model(options);
    check_against_plain(*model, torch::kFloat64, 1e-10);
    check_against_plain(*model, torch::kFloat32, 1e-5);
  }
}

DOCTEST_TEST_CASE("attention with dropout goes the long way to the same result") {
  for (const std::string positions : {"learned", "alibi", "rope"}) {
    auto options = small_options();
    options.transformer.positions = positions;
    options.shape.attention_dropout = 1e-12;  // in effect none, but not zero
    const auto model = strong_model(options);
    const auto batch = batch_of({random_ids(7, 21), random_ids(7, 22)});
    const auto expected = model->architecture->forward(batch, nullptr);
    model->train();
    const auto got = model->architecture->forward(batch, nullptr);
    DOCTEST_CHECK((got.output - expected.output).abs().max().item<double>() < 1e-10);
  }
}

DOCTEST_TEST_CASE("each dropout acts in training, and in training alone") {
  for (const auto member : {&nn::ShapeOptions::dropout, &nn::ShapeOptions::attention_dropout,
           &nn::ShapeOptions::activation_dropout, &nn::ShapeOptions::head_dropout}) {
    auto options = small_options();
    const auto sure = strong_model(options);
    options.shape.*member = 0.3;
    const auto model = strong_model(options);
    const auto batch = batch_of({random_ids(7, 23)});
    const auto expected = sure->architecture->forward(batch, nullptr).output;
    DOCTEST_CHECK(torch::equal(model->architecture->forward(batch, nullptr).output, expected));
    model->train();
    DOCTEST_CHECK_FALSE(
        torch::allclose(model->architecture->forward(batch, nullptr).output, expected));
  }
}

DOCTEST_TEST_CASE("learned positions end with one clear line") {
  auto options = small_options();
  options.transformer.context = 6;
  const auto model = strong_model(options);
  DOCTEST_CHECK(model->architecture->context() == 6);
  model->architecture->forward(batch_of({random_ids(6, 1)}), nullptr);
  const auto long_row = error_of(core::Code::bad_data,
      [&] { model->architecture->forward(batch_of({random_ids(7, 1)}), nullptr); });
  DOCTEST_CHECK(
      long_row ==
      "a row of 7 tokens is longer than the model's 6 learned positions; use a smaller window");
  const auto p = properties::kPad;  // padding does not count
  model->architecture->forward(batch_of({{p, p, 1, 2, 3, 4, 5, 6, p}}), nullptr);
  nn::State state;
  model->architecture->forward(batch_of({random_ids(4, 1)}), &state);
  error_of(core::Code::bad_data,
      [&] { model->architecture->forward(batch_of({random_ids(3, 1)}, false), &state); });
}

DOCTEST_TEST_CASE("a State is as it was when a batch is refused") {
  auto options = small_options();
  options.transformer.context = 6;
  const auto model = strong_model(options);
  const torch::NoGradGuard no_grad;
  const auto ids = random_ids(6, 2);
  const auto whole = model->architecture->forward(batch_of({ids}), nullptr);
  nn::State state;
  model->architecture->forward(batch_of({{ids[0], ids[1], ids[2], ids[3]}}), &state);
  DOCTEST_CHECK_THROWS_AS(
      model->architecture->forward(batch_of({random_ids(3, 1)}, false), &state), core::Error);
  const auto rest = model->architecture->forward(batch_of({{ids[4], ids[5]}}, false), &state);
  DOCTEST_CHECK(properties::difference(whole, 0, 4, rest, 0, 0, 2) < 1e-10);
}

DOCTEST_TEST_CASE("forgetting leaves what a window of the newest tokens would know") {
  for (const std::string positions : {"rope", "alibi", "none"}) {
    DOCTEST_CAPTURE(positions);
    auto options = small_options();
    options.shape.layers = 1;  // keys and values then depend on their own token alone
    options.transformer.positions = positions;
    const auto model = strong_model(options);
    DOCTEST_CHECK(model->architecture->carry() == nn::Carry::forget);
    const torch::NoGradGuard no_grad;
    const auto p = properties::kPad;
    const properties::Ids a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {9, p, 8, p, 7, 6, p, 5};
    nn::State state;
    model->architecture->forward(batch_of({a, b}), &state);
    model->architecture->forget(state, 3);
    const auto next = model->architecture->forward(batch_of({{9, 10}, {11, 12}}, false), &state);
    const auto fresh_a = model->architecture->forward(batch_of({{6, 7, 8, 9, 10}}), nullptr);
    const auto fresh_b = model->architecture->forward(batch_of({{7, 6, 5, 11, 12}}), nullptr);
    DOCTEST_CHECK(properties::difference(next, 0, 0, fresh_a, 0, 3, 2) < 1e-10);
    DOCTEST_CHECK(properties::difference(next, 1, 0, fresh_b, 0, 3, 2) < 1e-10);

    nn::State one_more;  // than is kept
    model->architecture->forward(batch_of({{5, 6, 7, 8}}), &one_more);
    model->architecture->forget(one_more, 3);
    const auto after = model->architecture->forward(batch_of({{9, 10}}, false), &one_more);
    DOCTEST_CHECK(properties::difference(after, 0, 0, fresh_a, 0, 3, 2) < 1e-10);

    model->architecture->forget(state, 0);
    const auto anew = model->architecture->forward(batch_of({{1, 2}, {3, 4}}, false), &state);
    const auto fresh = model->architecture->forward(batch_of({{1, 2}}), nullptr);
    DOCTEST_CHECK(properties::difference(anew, 0, 0, fresh, 0, 0, 2) < 1e-10);
  }
  DOCTEST_CHECK(strong_model(small_options())->architecture->carry() == nn::Carry::reencode);
}

DOCTEST_TEST_CASE("a State that forgets does not grow") {
  auto options = small_options();
  options.transformer.positions = "rope";
  const auto model = strong_model(options);
  const torch::NoGradGuard no_grad;
  nn::State state;
  std::int64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    model->architecture->forward(batch_of({{i % 7}, {i % 5}}, i == 0), &state);
    model->architecture->forget(state, 20);
    if (i < 100) most = std::max(most, state.bytes());
  }
  DOCTEST_CHECK(state.bytes() <= most);
}

DOCTEST_TEST_CASE("options that make no model name themselves") {
  const auto refused = [](auto change) {
    auto options = small_options();
    change(options);
    return error_of(core::Code::bad_config, [&] { nn::Model(options, properties::kVocabulary); });
  };
  DOCTEST_CHECK(
      refused([](auto& o) { o.shape.heads = 3; }) == "heads: 3 does not divide d-model 8");
  DOCTEST_CHECK(refused([](auto& o) { o.shape.layers = 0; }) == "layers: takes 1 to 10K, not 0");
  DOCTEST_CHECK(refused([](auto& o) { o.shape.layers = 1 << 30; }) ==
                "layers: takes 1 to 10K, not 1073741824");
  DOCTEST_CHECK(refused([](auto& o) { o.shape.d_ff = std::int64_t{1} << 60; }) ==
                "d-ff: takes 1 to 16M, or auto, not 1152921504606846976");
  DOCTEST_CHECK(
      refused([](auto& o) { o.shape.dropout = 1; }) == "dropout: takes 0 to below 1, not 1");
  DOCTEST_CHECK(refused([](auto& o) { o.transformer.norm = "mid"; }) ==
                "norm: takes pre, post, sublayer, sandwich, parallel or parallel-one, not 'mid'");
  DOCTEST_CHECK(
      refused([](auto& o) { o.transformer.positions = "x"; }).rfind("positions: takes", 0) == 0);
  DOCTEST_CHECK(
      refused([](auto& o) { o.transformer.activation = "x"; }).rfind("activation: takes", 0) == 0);
  DOCTEST_CHECK(
      refused([](auto& o) { o.transformer.context = 0; }).rfind("context: takes 1", 0) == 0);
  DOCTEST_CHECK(
      refused([](auto& o) { o.arch = "x"; }).rfind("arch: takes one of transformer", 0) == 0);
  DOCTEST_CHECK(refused([](auto& o) { o.shape.init = "x"; }).rfind("init: takes", 0) == 0);
  DOCTEST_CHECK(
      refused([](auto& o) { o.shape.memory_key = "x"; }).rfind("memory-key: takes", 0) == 0);
  DOCTEST_CHECK(refused([](auto& o) {
    o.vocabulary.cutoffs = {13};
  }).rfind("cutoffs: 13 is not below", 0) == 0);
  DOCTEST_CHECK(refused([](auto& o) {
    o.vocabulary.cutoffs = {4, 4};
  }) == "cutoffs: must increase, but 4 follows 4");
  DOCTEST_CHECK(refused([](auto& o) { o.transformer.positions = "rope", o.shape.heads = 8; }) ==
                "positions: rope needs heads of even width, not 1");
  DOCTEST_CHECK(refused([](auto& o) { o.transformer.kv_heads = 3; }) ==
                "kv-heads: 3 does not divide heads 2");
  DOCTEST_CHECK(refused([](auto& o) { o.arch = "lstm", o.transformer.kv_heads = 1; }) ==
                "kv-heads: requires arch transformer, not lstm");
  DOCTEST_CHECK(refused([](auto& o) {
    o.arch = "transformer-xl", o.transformer.norm = "parallel";
  }) == "norm: takes pre or post, not 'parallel'");
  DOCTEST_CHECK(
      refused([](auto& o) { o.transformer.norm_kind = "x"; }).rfind("norm-kind: takes", 0) == 0);
  DOCTEST_CHECK(refused([](auto& o) {
    o.transformer.positions = "rope", o.transformer.rope.share = 0.1;
  }).rfind("rope-partial-factor: 0.1 of a head of size 4 is less than two", 0) == 0);
}
