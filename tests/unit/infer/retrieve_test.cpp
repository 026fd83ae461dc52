// Passages before the model's input, compared with plain loops.

#include <algorithm>
#include <cmath>
#include <map>

#include "infer/score/report.h"
#include "infer/windows/retriever.h"
#include "nn/base/torch.h"
#include "retrieved_text.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using torch::Tensor;

infer::WindowPlan plan_of(
    const retrieved::Index& index, std::int64_t window, std::int64_t every, std::int64_t mix = 1) {
  auto plan = tiny::windows_of(window, every);
  infer::RetrievePlan retrieve;
  retrieve.index = index.opened;
  retrieve.every = every, retrieve.query = 12, retrieve.tokens = window / 2;
  retrieve.mix = mix, retrieve.temperature = 2;
  retrieve.put_into(plan);
  return plan;
}

// Returns log p of all tokens but the first. Each chunk of `every` tokens has its own rows, with a
// weight for a cache of the last positions.
std::vector<double> plain_nats(nn::Model& model, const std::vector<std::uint32_t>& tokens,
    const infer::WindowPlan& plan, const infer::MemoryPlan& memory) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size());
  std::vector<double> log_probs;
  std::map<std::int64_t, Tensor> kept;  // position -> f as scored
  for (std::int64_t c = 1; c < n; c += plan.stride) {
    const std::int64_t end = std::min(n, c + plan.stride);
    auto prefixes = retrieved::plain_prefixes(plan.retrieve, {tokens.begin(), tokens.begin() + c});
    if (prefixes.empty()) prefixes.resize(1);
    std::int64_t room = plan.window;
    for (const auto& prefix : prefixes)
      room = std::min(room, plan.window - std::ssize(prefix.tokens));
    const std::int64_t begin = std::max<std::int64_t>(0, end - 1 - room);
    std::vector<double> p(static_cast<std::size_t>(end - c));
    Tensor first;  // f of the text after the best passage
    for (const auto& prefix : prefixes) {
      auto row = prefix.tokens;
      row.insert(row.end(), tokens.begin() + begin, tokens.begin() + end - 1);
      const Tensor f = retrieved::encode(model, row).slice(0, std::ssize(prefix.tokens));
      if (!first.defined()) first = f;
      const Tensor words = model.head->log_probs(f, nullptr).to(torch::kFloat64);
      for (std::int64_t t = c; t < end; ++t)
        p[static_cast<std::size_t>(t - c)] +=
            prefix.weight *
            std::exp(words[t - 1 - begin][tokens[static_cast<std::size_t>(t)]].item<double>());
    }
    for (std::int64_t t = c; t < end; ++t) {
      double all = 0, hit = 0;
      const auto f = [&](std::int64_t i) { return i >= begin ? first[i - begin] : kept.at(i); };
      for (std::int64_t i = std::max<std::int64_t>(0, t - 1 - tiny::cache(memory).positions);
           i < t - 1; ++i) {
        const double mass = std::exp(tiny::cache(memory).theta * f(i).dot(f(t - 1)).item<double>());
        all += mass;
        if (tokens[static_cast<std::size_t>(i + 1)] == tokens[static_cast<std::size_t>(t)])
          hit += mass;
      }
      double own = p[static_cast<std::size_t>(t - c)];
      if (all > 0)
        own = (1 - tiny::cache(memory).lambda) * own + tiny::cache(memory).lambda * hit / all;
      log_probs.push_back(std::log(own));
    }
    for (std::int64_t t = c; t < end; ++t) kept[t - 1] = first[t - 1 - begin].clone();
  }
  return log_probs;
}

double difference(const Tensor& found, const std::vector<double>& expected) {
  DOCTEST_REQUIRE(found.numel() == std::ssize(expected));
  return tiny::largest_difference(found, torch::tensor(expected, torch::kFloat64));
}

infer::MemoryPlan cache_of(std::int64_t positions, nn::Model& model) {
  infer::MemoryOptions options;
  options.weights = "constant";
  tiny::context(options).memory = "none";
  tiny::cache(options).positions = positions;
  tiny::cache(options).lambda = 0.3;
  return infer::plan_memory(options, tiny::windows_of(40, 40), model);
}

}  // namespace

DOCTEST_TEST_CASE("a text behind passages is scored as a plain loop has it") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  const auto text = retrieved::words_of({70}, 8);
  const tiny::Shard shard(text);
  for (const auto& [arch, positions] :
      std::vector<std::pair<std::string, std::string>>{{"transformer", "learned"},
          {"transformer", "rope"}, {"transformer-xl", ""}, {"lstm", ""}}) {
    auto model = tiny::model_of(arch, positions.empty() ? "learned" : positions, 256);
    for (const auto& [window, every, mix] :
        std::vector<std::array<std::int64_t, 3>>{{40, 1, 1}, {40, 7, 1}, {40, 20, 1}, {24, 3, 3}}) {
      const auto plan = plan_of(index, window, every, mix);
      const infer::MemoryPlan none = infer::plan_memory(tiny::memory_of("none"), plan, model);
      const auto found = tiny::log_probs(model, shard.data(), plan, none);
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(window);
      DOCTEST_CAPTURE(every);
      DOCTEST_CAPTURE(mix);
      DOCTEST_CHECK(difference(found, plain_nats(model, text.tokens(), plan, none)) < 2e-4);
      const auto alone =
          tiny::log_probs(model, shard.data(), tiny::windows_of(window, every), none);
      DOCTEST_CHECK(tiny::largest_difference(found, alone) > 0.05);  // passages have an effect
    }
  }
}

DOCTEST_TEST_CASE("a cache beside passages, whose keys are what the best one makes of the text") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  const auto text = retrieved::words_of({60}, 9);
  const tiny::Shard shard(text);
  auto model = tiny::model_of("transformer", "rope", 256);
  for (const std::int64_t mix : {1, 3}) {
    const auto plan = plan_of(index, 40, 5, mix);
    const auto memory = cache_of(50, model);
    const auto found = tiny::log_probs(model, shard.data(), plan, memory);
    DOCTEST_CHECK(difference(found, plain_nats(model, text.tokens(), plan, memory)) < 2e-4);
  }
}

DOCTEST_TEST_CASE("how windows share a batch, and parts, change nothing") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  const tiny::Shard shard(retrieved::words_of({40, 30, 0, 20}, 8));
  auto model = tiny::model_of("transformer", "rope", 256);
  for (const bool by_document : {false, true}) {
    auto plan = plan_of(index, 32, 4, 2);
    plan.by_document = by_document;
    const auto memory = cache_of(30, model);
    plan.batch_tokens = 1;
    const auto alone = tiny::log_probs(model, shard.data(), plan, memory);
    plan.batch_tokens = 200;
    const auto together = tiny::log_probs(model, shard.data(), plan, memory);
    DOCTEST_CHECK(tiny::largest_difference(alone, together) < 1e-4);
    std::vector<Tensor> pieces;
    std::int64_t windows = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      infer::Callbacks watch;
      watch.part = {i, 3};
      watch.scored = [&](const infer::Scored& scored) { pieces.push_back(scored.log_prob); };
      watch.retrieved = [&](const infer::Retrieved& retrieved) { windows += retrieved.tokens; };
      infer::score(model, shard.data(), plan, memory, torch::kCPU, watch);
    }
    DOCTEST_CHECK(torch::equal(torch::cat(pieces), together));
    DOCTEST_CHECK(windows == together.numel());
  }
}

DOCTEST_TEST_CASE("a document sees no passages of its own") {
  auto text = retrieved::words_of({50, 60, 40}, 5);
  const retrieved::Index index(text, 16);
  text.documents.erase(text.documents.begin());
  const tiny::Shard shard(text);
  auto model = tiny::model_of("transformer", "rope", 256);
  auto plan = plan_of(index, 32, 4, 2);
  const auto first = shard.data().documents().end[0];
  std::size_t passages = 0;
  infer::Callbacks watch;
  watch.retrieved = [&](const infer::Retrieved& retrieved) {
    for (const auto& prefix : retrieved.prefixes) {
      ++passages;
      const auto own = retrieved.first < first ? 1U : 2U;
      DOCTEST_CHECK(index.opened->cuts().place(prefix.passage).document != own);
    }
  };
  infer::score(model, shard.data(), plan, {}, torch::kCPU, watch);
  DOCTEST_CHECK(passages > 50);
}

DOCTEST_TEST_CASE("a beginning token stands between passage and text, and is of no query") {
  const retrieved::Index index(retrieved::words_of({90}, 5), 24);
  const auto text = retrieved::words_of({12}, 8);
  const tiny::Shard shard(text);
  auto model = tiny::model_of("transformer", "rope", 256);
  auto plan = plan_of(index, 90, 4);
  plan.beginning = 0;
  const infer::MemoryPlan none = infer::plan_memory(tiny::memory_of("none"), plan, model);
  const auto found = tiny::log_probs(model, shard.data(), plan, none);
  const auto tokens = text.tokens();
  DOCTEST_REQUIRE(found.numel() == std::ssize(tokens));
  const torch::NoGradGuard no_gradient;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::size_t c = t / 4 * 4;
    const auto prefixes = retrieved::plain_prefixes(
        plan.retrieve, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(c)});
    std::vector<std::int64_t> row;
    if (!prefixes.empty()) row = prefixes[0].tokens;
    row.push_back(0);
    row.insert(row.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(t));
    const Tensor f = retrieved::encode(model, row);
    const Tensor words = model.head->log_probs(f.slice(0, -1), nullptr);
    DOCTEST_CHECK(found[static_cast<std::int64_t>(t)].item<double>() ==
                  doctest::Approx(words[0][tokens[t]].item<double>()).epsilon(1e-4));
  }
}
