#pragma once
// Two engines of one model with equal inputs.
#include <doctest/doctest.h>

#include <functional>

#include "core/rng.h"
#include "infer/decode/decode_engine.h"
#include "nn/base/architecture.h"
#include "nn/base/torch.h"

inline nn::Model engine_model(
    const std::function<void(nn::ModelOptions&)>& change, std::int64_t vocabulary) {
  torch::manual_seed(3);
  nn::ModelOptions options;
  options.shape.layers = 2, options.shape.d_model = 32, options.shape.heads = 2;
  options.transformer.context = 200;
  change(options);
  nn::Model model(options, vocabulary);
  const torch::NoGradGuard no_gradient;
  for (auto& [name, weight] : model.named_weights()) weight.add_(torch::randn_like(weight), 0.1);
  model.eval();
  return model;
}

inline double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

// Returns pieces of random length for some of the rows, and `sources` for most rows that start.
inline std::vector<infer::RowInput> random_feeds(
    core::Rng& rng, std::size_t rows, std::size_t longest, std::uint64_t words, bool sources) {
  std::vector<infer::RowInput> feeds(rows);
  for (auto& feed : feeds) {
    feed.fresh = rng.below(12) == 0;
    const std::size_t n = feed.fresh ? 1 + rng.below(4) : rng.below(longest + 1);
    for (std::size_t i = 0; i < n; ++i)
      feed.tokens.push_back(static_cast<std::int64_t>(rng.below(words)));
    if (sources && feed.fresh && rng.below(4) > 0)
      for (std::size_t i = 1 + rng.below(30); i > 0; --i)
        feed.source.push_back(static_cast<std::int64_t>(rng.below(words)));
  }
  if (feeds[0].tokens.empty()) feeds[0].tokens.push_back(1);
  return feeds;
}

/// Checks through random calls that `loops` gives the results of the model's modules.
inline void expect_modules(nn::Model& model, infer::Engine& loops) {
  infer::ModuleEngine modules(model, torch::kCPU);
  const bool reads = nn::arch_facts(model.options.arch).reads_source;
  const bool forgets = model.architecture->carry() == nn::Carry::forget;
  core::Rng rng(5);
  std::size_t rows = 3;
  modules.open(3);
  loops.open(3);
  for (int call = 0; call < 14; ++call) {
    auto feeds = random_feeds(rng, rows, call % 3 == 0 ? 20 : 2, 37, reads);
    if (reads && call == 0) feeds[1].source = {5, 6, 7}, feeds[2].source = {8};
    const auto expected = modules.feed(feeds), got = loops.feed(feeds);
    DOCTEST_REQUIRE(expected.output.sizes() == got.output.sizes());
    DOCTEST_CHECK(difference(expected.output, got.output) < 1e-4);
    DOCTEST_CHECK(difference(expected.key, got.key) < 1e-4);
    torch::Tensor z, own_z;
    const auto p = modules.head().log_probs(got.output, &z);
    DOCTEST_CHECK(difference(p, loops.head().log_probs(got.output, &own_z)) < 1e-4);
    DOCTEST_CHECK(difference(z, own_z) < 1e-4);
    if (call % 4 == 3) {
      std::vector<std::int64_t> chosen;
      const std::size_t next = 1 + rng.below(4);
      for (std::size_t i = 0; i < next; ++i)
        chosen.push_back(static_cast<std::int64_t>(rng.below(rows)));
      rows = next;
      modules.select(chosen);
      loops.select(chosen);
    }
    if (forgets && call % 5 == 4) {
      modules.forget(9);
      loops.forget(9);
    }
  }
}
