// N-grams of the text so far against a plain loop that counts every suffix anew.
#include <doctest/doctest.h>

#include "infer/score/tune.h"
#include "infer/serve/open_job.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;
using Ids = std::vector<std::uint32_t>;

constexpr std::int64_t kTextTypes = 7;  // so few that suffixes come again

infer::MemoryOptions text_ngrams(std::int64_t tokens, const std::string& lambda = "auto") {
  return infer::request_memory(tiny::memory_of("none"),
      R"({"online-ngrams": true, "online-ngrams-tokens": )" + std::to_string(tokens) +
          R"(, "online-ngrams-lambda": [")" + lambda + R"("]})");
}

struct PlainText {
  std::vector<double> p = std::vector<double>(kTextTypes);
  std::int64_t longest = 0;
  bool one = false;
  std::vector<std::int64_t> cited;  // positions of each next token after the longest suffix
};

// Witten-Bell's p of each token after a text, of whose tokens the last `kept` count.
PlainText plain_text(std::span<const std::uint32_t> text, std::int64_t kept) {
  PlainText made;
  const std::int64_t size = std::ssize(text), begin = std::max<std::int64_t>(0, size - kept);
  const auto at = [&](std::int64_t i) { return text[static_cast<std::size_t>(i)]; };
  std::fill(made.p.begin(), made.p.end(), 1.0 / kTextTypes);
  for (std::int64_t order = 0; order <= 32; ++order) {
    std::map<std::uint32_t, double> counts;
    std::vector<std::int64_t> next;
    double all = 0;
    for (std::int64_t i = begin + (order > 0); i < size; ++i) {
      bool same = i >= order;
      for (std::int64_t k = 1; same && k <= order; ++k) same = at(i - k) == at(size - k);
      if (!same) continue;
      ++counts[at(i)], ++all, next.push_back(i);
    }
    if (all == 0) break;
    const auto types = static_cast<double>(counts.size());
    for (std::uint32_t w = 0; w < kTextTypes; ++w) {
      auto& p = made.p[w];
      p = ((counts.contains(w) ? counts[w] : 0) + types * p) / (all + types);
    }
    if (order > 0) made.longest = order, made.one = counts.size() == 1, made.cited = next;
  }
  return made;
}

}  // namespace

DOCTEST_TEST_CASE("n-grams of a text are a plain loop's, whatever windows, layouts and parts") {
  const auto text = tiny::text_of({120, 90, 0, 60}, kTextTypes, 7);
  const tiny::Shard shard(text);
  const Ids tokens = text.tokens();
  const auto check = [&](nn::Model& model, infer::WindowPlan windows) {
    std::set<std::int64_t> buckets;
    for (const bool by_document : {false, true})
      for (const std::int64_t kept : {1000, 50, 1}) {
        windows.by_document = by_document;
        const auto plan = infer::plan_memory(text_ngrams(kept, "0.3"), windows, model);
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
                const auto plain = plain_text(std::span(tokens).subspan(from, at - from), kept);
                const double p = plain.p[tokens[at]];
                const double head = std::exp(block.parts.head[i].item<double>());
                const auto& own = block.parts.sources[0];
                DOCTEST_CHECK(own.separate[0][i].item<double>() ==
                              doctest::Approx(std::log(p)).epsilon(1e-9));
                const auto bucket =
                    infer::ngram_bucket(static_cast<std::uint64_t>(plain.longest), plain.one);
                DOCTEST_CHECK(own.bucket[i].item<std::int64_t>() == bucket);
                buckets.insert(bucket);
                DOCTEST_CHECK(block.log_prob[i].item<double>() ==
                              doctest::Approx(std::log(0.7 * head + 0.3 * p)).epsilon(1e-9));
              }
            };
            infer::score(model, shard.data(), windows, plan, torch::kCPU, watch);
          }
          DOCTEST_CHECK(scored > 200);
        }
      }
    DOCTEST_CHECK(buckets.size() > 8);
  };
  nn::Model model = tiny::model_of("transformer", "learned", kTextTypes),
            lstm = tiny::model_of("lstm", "rope", kTextTypes);
  auto windows = tiny::windows_of(32, 20);
  windows.batch_tokens = 64;
  check(model, windows);
  check(lstm, tiny::windows_of(25, 25, /*carried=*/true));
}

DOCTEST_TEST_CASE(
    "streams of n-grams: each keeps its own text, all tokens sum to 1, and cites it") {
  nn::Model model = tiny::model_of("transformer", "learned", kTextTypes, torch::kFloat64);
  const auto plan =
      infer::plan_memory(text_ngrams(90, "0.25"), tiny::windows_of(32, 32, true), model);
  infer::StreamMemory memory(plan, 32, /*streaming=*/true, model, 3);
  // The first one repeats itself over more than the longest suffix that counts.
  std::vector<Ids> texts = {tiny::text_of({60}, kTextTypes, 2).tokens(), {5}, {}};
  const Ids once = texts[0];
  texts[0].insert(texts[0].end(), once.begin(), once.end() - 1);
  const auto read = [&](std::int64_t row, const Ids& tokens) {
    memory.read(row, std::vector<std::int64_t>(tokens.begin(), tokens.end()));
  };
  const torch::NoGradGuard no_gradient;
  torch::manual_seed(1);
  for (std::size_t row = 0; row < 2; ++row) read(static_cast<std::int64_t>(row), texts[row]);
  std::int64_t citations = 0;
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
    DOCTEST_CHECK(words.exp().sum(1).allclose(torch::ones({n}, torch::kFloat64), 0, 1e-9));
    for (std::int64_t row = 0; row < n; ++row) {
      const Ids& text = texts[static_cast<std::size_t>(row)];
      const auto plain = plain_text(text, 90);
      const std::int64_t size = std::ssize(text);
      for (std::uint32_t word = 0; word < kTextTypes; ++word) {
        const double own = head[row][word].exp().item<double>();
        // Before any token the head has it all.
        const double p = text.empty() ? own : 0.75 * own + 0.25 * plain.p[word];
        DOCTEST_CHECK(words[row][word].exp().item<double>() == doctest::Approx(p).epsilon(1e-9));
        const auto evidence = memory.evidence({row, word, std::log(p)}, 1000, 5);
        if (plain.longest == 0) DOCTEST_CHECK(evidence.contexts.empty());
        std::vector<std::int64_t> after;
        for (const auto i : plain.cited)
          if (text[static_cast<std::size_t>(i)] == word) after.push_back(i);
        if (after.empty()) continue;
        DOCTEST_CHECK(evidence.share == doctest::Approx(0.25 * plain.p[word] / p).epsilon(1e-9));
        DOCTEST_REQUIRE(evidence.contexts.size() == after.size());
        for (std::size_t i = 0; i < after.size(); ++i) {
          const auto& cited = evidence.contexts[i];
          const auto place = after[after.size() - 1 - i];  // the latest first
          DOCTEST_CHECK(cited.row == place);
          // Of the tokens before it, those that are kept.
          DOCTEST_CHECK(cited.matched ==
                        std::min(plain.longest, place - std::max<std::int64_t>(0, size - 90)));
          const auto from = static_cast<std::size_t>(place) - cited.before.size();
          DOCTEST_CHECK(std::equal(cited.before.begin(), cited.before.end(),
              text.begin() + static_cast<std::ptrdiff_t>(from)));
          ++citations;
        }
      }
    }
    for (std::int64_t row = 0; row < n; ++row) {
      read(row, {3, 3});
      auto& text = texts[static_cast<std::size_t>(row)];
      text.insert(text.end(), {3, 3});
    }
  }
  DOCTEST_CHECK(citations > 3);
}

DOCTEST_TEST_CASE("a later token changes no probability before it") {
  nn::Model model = tiny::model_of("transformer", "learned", kTextTypes);
  const auto windows = tiny::windows_of(32, 16);
  auto options = text_ngrams(64);
  options.weights = "auto";
  const auto plan = infer::plan_memory(options, windows, model);
  DOCTEST_CHECK(plan.online);
  auto text = tiny::text_of({150}, kTextTypes, 3);
  const auto log_probs = [&] {
    std::vector<double> all;
    infer::Callbacks watch;
    watch.scored = [&](const infer::Scored& block) {
      for (std::int64_t i = 0; i < block.targets.size(0); ++i)
        all.push_back(block.log_prob[i].item<double>());
    };
    infer::score(model, tiny::Shard(text).data(), windows, plan, torch::kCPU, watch);
    return all;
  };
  const auto before = log_probs();
  for (const std::size_t changed : {40, 100}) {
    auto& token = text.documents[0][changed];
    token = (token + 1) % kTextTypes;
    const auto after = log_probs();
    // The first token is not scored.
    DOCTEST_CHECK(std::equal(
        before.begin(), before.begin() + static_cast<std::ptrdiff_t>(changed) - 1, after.begin()));
    DOCTEST_CHECK(before != after);
    token = (token + kTextTypes - 1) % kTextTypes;
  }
}

DOCTEST_TEST_CASE("tuning finds the weights of a text's n-grams, and its loss is the text's") {
  nn::Model model = tiny::model_of("transformer", "learned", kTextTypes);
  const tiny::Shard shard(tiny::text_of({200, 60}, kTextTypes, 4));
  const auto windows = tiny::windows_of(32, 16);
  for (const std::vector<double>& lambdas : {std::vector<double>{}, {0, 0.1, 0.4}}) {
    infer::TuneOptions grid;
    grid.lambdas = lambdas;
    const auto options = text_ngrams(500, "0.1");
    const auto tuned = infer::tune(model, shard.data(), windows,
        infer::plan_memory(options, windows, model), grid, torch::kCPU);
    const auto again = infer::plan_memory(infer::settled(options, tuned.memory), windows, model);
    const double loss = infer::score(model, shard.data(), windows, again, torch::kCPU).loss();
    DOCTEST_CHECK(loss == doctest::Approx(tuned.best.loss).epsilon(1e-6));
    for (const char* const lambda : {"0", "0.1", "0.4"})
      DOCTEST_CHECK(
          loss <= infer::score(model, shard.data(), windows,
                      infer::plan_memory(text_ngrams(500, lambda), windows, model), torch::kCPU)
                          .loss() +
                      1e-9);
  }
}

DOCTEST_TEST_CASE("options of a text's n-grams are refused by name") {
  nn::Model model = tiny::model_of("transformer");
  const auto refused = [&](const std::string& lambda) {
    return thrown(
        [&] { infer::plan_memory(text_ngrams(9, lambda), tiny::windows_of(32, 32), model); });
  };
  DOCTEST_CHECK(refused("gate").names("--online-ngrams-lambda gate: not supported"));
  DOCTEST_CHECK(refused("0.1,0.2").names("--online-ngrams-lambda: takes 1 or 20 weights, not 2"));
}
