// Decoding in rings, as on a device, compared with the CPU loops and the modules.
#include "infer/loops/make_engine.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "engines.h"
#include "layered_variants.h"
#include "nn/base/cuda.h"
#include "transformers.h"

namespace {

// Feeds rows at random, takes tokens back, selects rows and forgets the oldest tokens.
void expect_same(nn::Model& model, infer::Engine& expected, infer::Engine& got) {
  const bool forgets = model.architecture->carry() == nn::Carry::forget,
             reads = nn::arch_facts(model.options.arch).reads_source;
  core::Rng rng(9);
  std::size_t rows = 3;
  for (auto* engine : {&expected, &got}) engine->open(3);
  for (int call = 0; call < 24; ++call) {
    const auto feeds = random_feeds(rng, rows, call % 3 == 0 ? 20 : 1, 37, reads);
    std::vector<std::int64_t> back;
    for (const auto& feed : feeds)
      back.push_back(static_cast<std::int64_t>(rng.below(feed.tokens.size() + 1)));
    std::vector<std::int64_t> chosen;
    for (std::size_t i = 0; i < (call % 8 == 6 ? 1 + rng.below(4) : rows); ++i)
      chosen.push_back(static_cast<std::int64_t>(rng.below(rows)));
    std::vector<nn::Hidden> both;
    for (auto* engine : {&expected, &got}) {
      if (call % 4 == 1) engine->mark();
      both.push_back(engine->feed(feeds));
      if (call % 4 == 1) engine->roll_back(back);
      if (call % 4 == 2) engine->select(chosen);
      if (forgets && call % 5 == 4) engine->forget(9);
    }
    if (call % 4 == 2) rows = chosen.size();
    DOCTEST_REQUIRE(both[0].output.sizes() == both[1].output.sizes());
    DOCTEST_CHECK(difference(both[0].output, both[1].output) <
                  1e-5 * both[0].output.abs().max().item<double>());
    DOCTEST_CHECK(
        difference(both[0].key, both[1].key) < 1e-5 * both[0].key.abs().max().item<double>());
  }
}

}  // namespace

DOCTEST_TEST_CASE("rings give what the CPU's loops give, for every kind of model that has them") {
  const torch::NoGradGuard no_gradient;
  auto variants = transformer_variants();
  for (const auto& other : layered_variants()) variants.push_back(other);
  int tried = 0;
  for (const auto& [name, change] : variants) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    if (dynamic_cast<nn::RingDecoder*>(model.architecture.get()) == nullptr) continue;
    const auto loops = infer::make_engine(model, torch::kCPU, infer::Precision::float32);
    const nn::AsDevice as;
    infer::DeviceEngine rings(model, torch::kCPU);
    expect_same(model, *loops, rings);
    expect_modules(model, rings);
    ++tried;
  }
  DOCTEST_CHECK(tried == 33);
}

DOCTEST_TEST_CASE("rings end where learned positions do") {
  nn::Model model = engine_model([](nn::ModelOptions& o) { o.transformer.context = 5; }, 37);
  const nn::AsDevice as;
  infer::DeviceEngine engine(model, torch::kCPU);
  engine.open(2);
  engine.feed({{{1, 2, 3, 4, 5}}, {{1}}});
  engine.feed({{}, {{2, 3, 4}}});
  DOCTEST_CHECK_THROWS_AS(engine.feed({{{6}}, {}}), core::Error);
}
