// The loops of each architecture, compared with its modules.
#include <doctest/doctest.h>

#include "core/error.h"
#include "engines.h"
#include "infer/decode/decode_engine.h"
#include "infer/loops/layered_models.h"
#include "infer/loops/make_engine.h"
#include "layered_variants.h"
#include "nn/base/torch.h"

namespace {

using Change = std::function<void(nn::ModelOptions&)>;

std::unique_ptr<infer::Engine> loops_of(nn::Model& model, infer::Precision precision) {
  auto layered = infer::layered_model(model, torch::kCPU, precision);
  DOCTEST_REQUIRE(layered.has_value());
  return std::make_unique<infer::LayeredEngine>(model, std::move(*layered), precision);
}

// Adaptive embeddings use torch's products, whose last bits depend on the number of rows.
bool adaptive(const nn::Model& model) { return !model.options.vocabulary.cutoffs.empty(); }

// What a layer with a memory sees depends on where a call begins.
bool whole_calls(const nn::Model& model) { return nn::arch_facts(model.options.arch).layer_memory; }

}  // namespace

DOCTEST_TEST_CASE("the loops of each architecture give what its modules give") {
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, change] : layered_variants()) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    expect_modules(model, *loops_of(model, infer::Precision::float32));
  }
}

DOCTEST_TEST_CASE("loops see as far as the model's layers are told to see") {
  const torch::NoGradGuard no_gradient;
  for (const char* const arch : {"transformer-xl", "srupp"}) {
    nn::Model model = engine_model(
        [&](nn::ModelOptions& o) { o.arch = arch, o.layer_memory.layer_memory = "9"; }, 37);
    nn::LayerReach reach;
    reach.layer_memory = "2", reach.same_length = "on";
    model.architecture->set_reach(reach);
    expect_modules(model, *loops_of(model, infer::Precision::float32));
  }
}

DOCTEST_TEST_CASE(
    "what a row gets from loops depends on neither what stands beside it nor how it is fed") {
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, change] : layered_variants())
    for (const auto precision : {infer::Precision::float32, infer::Precision::int8}) {
      DOCTEST_CAPTURE(name);
      nn::Model model = engine_model(change, 37);
      if (adaptive(model)) continue;
      const auto engine = loops_of(model, precision);
      core::Rng rng(8);
      std::vector<infer::RowInput> all;
      for (const std::size_t length : {70, 3, 19, 1}) {
        auto& text = all.emplace_back().tokens;
        for (std::size_t i = 0; i < length; ++i)
          text.push_back(static_cast<std::int64_t>(rng.below(37)));
      }
      engine->open(4);
      const auto together = engine->feed(all);
      std::int64_t begin = 0;
      for (const auto& text : all) {
        engine->open(1);
        const auto alone = engine->feed({text});
        DOCTEST_CHECK(
            torch::equal(alone.output, together.output.narrow(0, begin, alone.output.size(0))));
        DOCTEST_CHECK(torch::equal(alone.key, together.key.narrow(0, begin, alone.key.size(0))));
        engine->open(1);
        for (std::size_t i = 0; i < text.tokens.size(); ++i) {
          const auto one = engine->feed({{{text.tokens[i]}}});
          const auto at = static_cast<std::int64_t>(i);
          if (whole_calls(model)) break;
          DOCTEST_REQUIRE(torch::equal(one.output[0], alone.output[at]));
          DOCTEST_REQUIRE(torch::equal(one.key[0], alone.key[at]));
        }
        begin += alone.output.size(0);
      }
    }
}

DOCTEST_TEST_CASE("rows of loops that share a past part without touching each other") {
  for (const auto& [name, change] : layered_variants()) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    if (adaptive(model)) continue;
    const auto engine = loops_of(model, infer::Precision::float32);
    const std::vector<std::int64_t> past{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const auto go_on = [&](std::int64_t rows, std::int64_t first) {
      torch::Tensor last;
      for (std::int64_t step = 0; step < 12; ++step) {
        std::vector<infer::RowInput> feeds;
        for (std::int64_t row = 0; row < rows; ++row)
          feeds.push_back({{step + 12 * (first + row)}});
        last = engine->feed(feeds).output;
      }
      return last;
    };
    engine->open(1);
    engine->feed({{past}});
    engine->select({0, 0, 0});
    const auto together = go_on(3, 0);
    for (std::int64_t row = 0; row < 3; ++row) {
      engine->open(1);
      engine->feed({{past}});
      DOCTEST_CHECK(torch::equal(go_on(1, row)[0], together[row]));
    }
  }
}

DOCTEST_TEST_CASE("what loops take back they were never fed") {
  for (const auto& [name, change] : layered_variants()) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    if (adaptive(model)) continue;
    const auto guessing = loops_of(model, infer::Precision::float32),
               plain = loops_of(model, infer::Precision::float32);
    core::Rng rng(4);
    constexpr std::size_t kRows = 5;
    guessing->open(kRows), plain->open(kRows);
    for (int call = 0; call < 12; ++call) {
      std::vector<infer::RowInput> guesses(kRows), right;
      std::vector<std::int64_t> wrong;
      for (auto& feed : guesses) {
        for (auto n = 1 + rng.below(12); n > 0; --n)
          feed.tokens.push_back(static_cast<std::int64_t>(rng.below(37)));
        wrong.push_back(
            call % 4 == 3 ? 0 : static_cast<std::int64_t>(rng.below(feed.tokens.size())));
        right.push_back(feed);
        right.back().tokens.resize(feed.tokens.size() - static_cast<std::size_t>(wrong.back()));
      }
      guessing->mark();
      const auto got = guessing->feed(guesses), expected = plain->feed(right);
      if (call % 3 == 1) {  // rows are reordered while tokens may still be taken back
        const std::vector<std::int64_t> places{4, 0, 2, 1, 3};
        guessing->select(places), plain->select(places);
        auto moved = wrong;
        for (std::size_t row = 0; row < kRows; ++row)
          moved[row] = wrong[static_cast<std::size_t>(places[row])];
        wrong = moved;
      }
      if (call % 4 != 3) guessing->roll_back(wrong);
      std::int64_t at = 0, from = 0;
      for (std::size_t row = 0; row < kRows; ++row) {
        const auto n = std::ssize(right[row].tokens);
        DOCTEST_REQUIRE(
            torch::equal(got.output.narrow(0, from, n), expected.output.narrow(0, at, n)));
        DOCTEST_REQUIRE(torch::equal(got.key.narrow(0, from, n), expected.key.narrow(0, at, n)));
        at += n, from += std::ssize(guesses[row].tokens);
      }
    }
  }
}

DOCTEST_TEST_CASE("narrow weights of loops are off by what rounding them says, and no more") {
  for (const char* const arch : {"mosaic", "mosaic2", "gla", "lstm", "srupp", "transformer-xl"}) {
    DOCTEST_CAPTURE(arch);
    nn::Model model =
        engine_model([&](nn::ModelOptions& o) { o.arch = arch, o.shape.d_model = 128; }, 300);
    std::vector<std::int64_t> text;
    core::Rng rng(2);
    for (int i = 0; i < 20; ++i) text.push_back(static_cast<std::int64_t>(rng.below(300)));
    infer::ModuleEngine modules(model, torch::kCPU);
    const auto error = [&](infer::Precision precision) {
      return infer::compare(modules, *loops_of(model, precision), text);
    };
    const auto exact = error(infer::Precision::float32), half = error(infer::Precision::bfloat16),
               byte = error(infer::Precision::int8);
    DOCTEST_CHECK(exact.max < 1e-4);
    DOCTEST_CHECK(half.rms > exact.rms);
    DOCTEST_CHECK(half.rms < 0.05);
    DOCTEST_CHECK(byte.rms > half.rms);
    DOCTEST_CHECK(byte.rms < 0.3);
  }
}

DOCTEST_TEST_CASE("an engine is chosen by what the model is") {
  const auto engine_of = [](const Change& change, infer::Precision precision) {
    nn::Model model = engine_model(change, 37);
    if (model.options.arch == "mosaic" && model.options.mosaic.persistent_slots == 5)
      model.architecture->bound_slots({4, false});
    const auto engine = infer::make_engine(model, torch::kCPU, precision);
    return dynamic_cast<infer::ModuleEngine*>(engine.get()) == nullptr;
  };
  const auto bounded = [](nn::ModelOptions& o) {
    o.arch = "mosaic", o.mosaic.persistent_slots = 5;
  };
  for (const char* const arch : {"transformer", "mosaic", "gla", "lstm", "srupp", "transformer-xl"})
    DOCTEST_CHECK(engine_of([&](nn::ModelOptions& o) { o.arch = arch; }, infer::Precision::int8));
  DOCTEST_CHECK(!engine_of(bounded, infer::Precision::float32));
  DOCTEST_CHECK_THROWS_AS(engine_of(bounded, infer::Precision::int8), core::Error);
}
