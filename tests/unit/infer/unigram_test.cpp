// The adaptive unigram against a plain loop over the text before each token.
#include <doctest/doctest.h>

#include "infer/score/tune.h"
#include "infer/serve/open_job.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;
using Ids = std::vector<std::uint32_t>;

constexpr std::int64_t kUnigramTypes = 23;

// Options with a unigram and no other memory.
infer::MemoryOptions unigram_of(const std::string& half_life, const std::string& lambda) {
  return infer::request_memory(
      tiny::memory_of("none"), R"({"unigram": true, "unigram-half-life": ")" + half_life +
                                   R"(", "unigram-lambda": ")" + lambda + R"("})");
}

// p of a token after others: their counts by their distance, and one token more that may be any.
double plain_unigram(std::span<const std::uint32_t> before, std::uint32_t token, double half_life) {
  double all = 1, own = 1.0 / static_cast<double>(kUnigramTypes);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto distance = static_cast<double>(before.size() - 1 - i);
    const double counts = half_life > 0 ? std::pow(0.5, distance / half_life) : 1;
    all += counts;
    if (before[i] == token) own += counts;
  }
  return own / all;
}

}  // namespace

DOCTEST_TEST_CASE("a unigram counts the whole stream, whatever windows, layouts and parts") {
  const auto text = tiny::text_of({120, 90, 0, 60}, kUnigramTypes, 7);
  const tiny::Shard shard(text);
  const Ids tokens = text.tokens();
  const auto check = [&](nn::Model& model, infer::WindowPlan windows) {
    for (const bool by_document : {false, true})
      for (const double half_life : {0.0, 15.0}) {
        windows.by_document = by_document;
        const auto plan = infer::plan_memory(
            unigram_of(half_life > 0 ? std::to_string(half_life) : "none", "0.3"), windows, model);
        for (const std::int64_t parts : {1, 3}) {
          std::int64_t scored = 0;
          for (std::int64_t part = 0; part < parts; ++part) {
            infer::Callbacks watch;
            watch.part = {part, parts};
            watch.scored = [&](const infer::Scored& block) {
              scored += block.targets.size(0);
              for (std::int64_t i = 0; i < block.targets.size(0); ++i) {
                const std::uint64_t at = block.first + static_cast<std::uint64_t>(i);
                const std::uint64_t from = text.begin_of(at, by_document);
                const double p = plain_unigram(
                    std::span(tokens).subspan(from, at - from), tokens[at], half_life);
                const double head = std::exp(block.parts.head[i].item<double>());
                DOCTEST_CHECK(block.parts.sources[0].separate[0][0][i].item<double>() ==
                              doctest::Approx(std::log(p)).epsilon(1e-9));
                DOCTEST_CHECK(block.log_prob[i].item<double>() ==
                              doctest::Approx(std::log(0.7 * head + 0.3 * p)).epsilon(1e-9));
              }
            };
            infer::score(model, shard.data(), windows, plan, torch::kCPU, watch);
          }
          DOCTEST_CHECK(scored > 200);
        }
      }
  };
  nn::Model model = tiny::model_of("transformer"), lstm = tiny::model_of("lstm");
  auto windows = tiny::windows_of(32, 20);
  windows.batch_tokens = 64;
  check(model, windows);
  check(lstm, tiny::windows_of(25, 25, /*carried=*/true));
}

DOCTEST_TEST_CASE(
    "streams of a unigram: all words sum to 1, and each stream keeps its own counts") {
  nn::Model model = tiny::model_of("transformer", "learned", kUnigramTypes, torch::kFloat64);
  const auto plan =
      infer::plan_memory(unigram_of("4", "0.25"), tiny::windows_of(32, 32, true), model);
  infer::StreamMemory memory(plan, 32, /*streaming=*/true, model, 3);
  std::vector<Ids> texts = {{1, 2, 3, 2, 2}, {5}, {}};
  const auto read = [&](std::int64_t row, const Ids& tokens) {
    memory.read(row, std::vector<std::int64_t>(tokens.begin(), tokens.end()));
  };
  const torch::NoGradGuard no_gradient;
  torch::manual_seed(1);
  for (std::size_t row = 0; row < 2; ++row) read(static_cast<std::int64_t>(row), texts[row]);
  for (const std::vector<std::int64_t>& rows :
      {std::vector<std::int64_t>{0, 1, 2}, {2, 0, 0, 1}, {1, 2}}) {
    const auto n = std::ssize(rows);
    std::vector<Ids> chosen;
    for (const auto row : rows) chosen.push_back(texts[static_cast<std::size_t>(row)]);
    texts = chosen;
    memory.select(torch::tensor(rows));
    const Tensor f = torch::randn({n, model.architecture->d_model()}, torch::kFloat64);
    const Tensor g = torch::randn({n, model.architecture->d_key()}, torch::kFloat64);
    const Tensor run = torch::arange(n);
    const Tensor words = memory.log_probs(*model.head, f, g, {run, run, run});
    const Tensor head = model.head->log_probs(f, nullptr);
    DOCTEST_CHECK(words.exp().sum(1).allclose(torch::ones({n}, torch::kFloat64), 0, 1e-6));
    for (std::int64_t row = 0; row < n; ++row) {
      const Ids& text = texts[static_cast<std::size_t>(row)];
      for (std::uint32_t word = 0; word < kUnigramTypes; ++word) {
        const double own = head[row][word].exp().item<double>();
        // Before any token the head has it all.
        const double p = text.empty() ? own : 0.75 * own + 0.25 * plain_unigram(text, word, 4);
        DOCTEST_CHECK(words[row][word].exp().item<double>() == doctest::Approx(p).epsilon(1e-9));
      }
    }
    for (std::int64_t row = 0; row < n; ++row) {
      read(row, {7, 7});
      auto& text = texts[static_cast<std::size_t>(row)];
      text.insert(text.end(), {7, 7});
    }
  }
}

DOCTEST_TEST_CASE(
    "tuning finds the half-life and the share of a unigram, and its loss is the text's") {
  nn::Model model = tiny::model_of("transformer");
  const auto text = tiny::text_of({200, 60}, kUnigramTypes, 4);
  const tiny::Shard shard(text);
  const auto windows = tiny::windows_of(32, 16);
  infer::TuneOptions grid;
  grid.points["unigram-half-life"] = {2, 8, 40};
  grid.lambdas = {0, 0.1, 0.3, 0.6};
  const auto tuned = infer::tune(model, shard.data(), windows,
      infer::plan_memory(unigram_of("none", "0.1"), windows, model), grid, torch::kCPU);
  double best = HUGE_VAL;
  for (const char* const half_life : {"2", "8", "40"})
    for (const char* const lambda : {"0", "0.1", "0.3", "0.6"}) {
      const auto plan = infer::plan_memory(unigram_of(half_life, lambda), windows, model);
      best = std::min(best, infer::score(model, shard.data(), windows, plan, torch::kCPU).loss());
    }
  DOCTEST_CHECK(tuned.best.loss == doctest::Approx(best).epsilon(1e-6));
  // The options that the plan settles to give that plan again.
  const auto again =
      infer::plan_memory(infer::settled(unigram_of("none", "0.1"), tuned.memory), windows, model);
  DOCTEST_CHECK(infer::score(model, shard.data(), windows, again, torch::kCPU).loss() ==
                doctest::Approx(best).epsilon(1e-6));
}

DOCTEST_TEST_CASE("a unigram's options: weights are learned unless given, and shares are below 1") {
  nn::Model model = tiny::model_of("transformer");
  const auto windows = tiny::windows_of(32, 32);
  const auto plan = [&](const std::string& lambda) {
    auto options = unigram_of("none", lambda);
    options.weights = "auto";
    return infer::plan_memory(options, windows, model);
  };
  DOCTEST_CHECK(plan("auto").online);
  DOCTEST_CHECK(!plan("0.2").online);
  DOCTEST_CHECK(plan("gate").gates.has("unigram"));
  DOCTEST_CHECK(thrown([&] { plan("1"); }).names("--unigram-lambda: takes 0 to below 1"));
}
