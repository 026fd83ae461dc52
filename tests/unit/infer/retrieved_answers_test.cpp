// Texts and continuations with passages, as score computes them.

#include "infer/answers/passage_scorer.h"
#include "nn/base/torch.h"
#include "retrieved_text.h"

#include <doctest/doctest.h>

namespace {

using torch::Tensor;

std::vector<std::int64_t> ids(const tiny::Text& text) {
  const auto tokens = text.tokens();
  return {tokens.begin(), tokens.end()};
}

infer::WindowPlan answer_windows(const retrieved::Index& index, std::int64_t window) {
  auto windows = tiny::windows_of(window, 5);
  infer::RetrievePlan plan;
  plan.index = index.opened;
  plan.every = 5, plan.query = 12, plan.tokens = window / 3;
  plan.put_into(windows);
  return windows;
}

infer::MemoryPlan memory_of(const std::string& names, std::int64_t cache, nn::Model& model) {
  infer::MemoryOptions options = tiny::memory_of(names);
  tiny::cache(options).positions = cache, tiny::cache(options).lambda = 0.3;
  if (names.find("long") != names.npos) tiny::context(options).long_reach = "70";
  return infer::plan_memory(options, tiny::windows_of(40, 40), model);
}

}  // namespace

DOCTEST_TEST_CASE("a text behind passages has the scores of eval-ppl, whatever is remembered") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  const auto text = retrieved::words_of({40}, 8);
  const tiny::Shard shard(text);
  auto model = tiny::model_of("transformer", "rope", 256);
  infer::ModuleEngine engine(model, torch::kCPU);
  for (const auto& memory : {memory_of("none", 0, model), memory_of("none", 50, model),
           memory_of("local", 0, model), memory_of("local,long", 30, model)}) {
    const auto windows = answer_windows(index, 40);
    const auto expected = tiny::log_probs(model, shard.data(), windows, memory);
    infer::PassageScorer scorer(model, engine, windows, memory, 256);
    infer::Passage passage;
    passage.text = true;
    const auto tokens = ids(text);
    passage.context = {tokens[0]};
    passage.continuations = {{tokens.begin() + 1, tokens.end()}};
    const auto scores = scorer.score({&passage, 1})[0][0];
    DOCTEST_REQUIRE(std::ssize(scores.log_prob) == expected.numel());
    DOCTEST_CHECK(scores.retrieved.size() == (tokens.size() - 1 + 4) / 5);
    DOCTEST_CHECK(
        tiny::largest_difference(torch::tensor(scores.log_prob, torch::kFloat64), expected) < 2e-4);
  }
}

DOCTEST_TEST_CASE(
    "continuations behind passages, each looked for at the end of what stands there") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  auto model = tiny::model_of("transformer", "rope", 256);
  infer::ModuleEngine engine(model, torch::kCPU);
  const torch::NoGradGuard no_gradient;
  for (const std::int64_t words : {4, 30}) {  // the context fits into the window, or does not
    infer::Passage passage;
    passage.context = ids(retrieved::words_of({static_cast<int>(words)}, 8));
    passage.continuations = {ids(retrieved::words_of({1}, 3)), ids(retrieved::words_of({6}, 4))};
    const auto windows = answer_windows(index, 40);
    infer::PassageScorer scorer(model, engine, windows, memory_of("none", 0, model), 256);
    const auto scores = scorer.score({&passage, 1})[0];
    for (std::size_t c = 0; c < 2; ++c) {
      auto tokens = passage.context;
      const auto start = tokens.size();
      tokens.insert(tokens.end(), passage.continuations[c].begin(), passage.continuations[c].end());
      DOCTEST_REQUIRE(scores[c].log_prob.size() == passage.continuations[c].size());
      for (std::size_t t = start; t < tokens.size(); ++t) {
        const std::size_t chunk = start + (t - start) / 5 * 5,
                          end = std::min(chunk + 5, tokens.size());
        const auto prefixes = retrieved::plain_prefixes(windows.retrieve,
            {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(chunk)});
        std::vector<std::int64_t> row;
        if (!prefixes.empty()) row = prefixes[0].tokens;
        const std::size_t room = 40 - row.size(), from = end - 1 > room ? end - 1 - room : 0;
        row.insert(row.end(), tokens.begin() + static_cast<std::ptrdiff_t>(from),
            tokens.begin() + static_cast<std::ptrdiff_t>(t));
        const Tensor f = retrieved::encode(model, row);
        const Tensor log_p = model.head->log_probs(f.slice(0, -1), nullptr);
        DOCTEST_CHECK(scores[c].log_prob[t - start] ==
                      doctest::Approx(log_p[0][tokens[t]].item<double>()).epsilon(1e-4));
      }
    }
  }
}
