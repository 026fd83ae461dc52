// N-grams as a memory, compared with scans of their text: scores, whole rows, shares, tuning.
#include "infer/sources/ngram_source.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "infer/memory/stream_memory.h"
#include "infer/score/report.h"
#include "infer/score/tune.h"
#include "infer/sources/source_kinds.h"
#include "ngrams/ngrams_builder.h"
#include "plain_scores.h"
#include "tiny.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;
using Ids = std::vector<std::uint32_t>;

// An index of texts in a temporary folder.
struct Indexed {
  explicit Indexed(const std::vector<tiny::Text>& texts) {
    std::vector<std::string> folders;
    for (const auto& text : texts) {
      folders.push_back(folder / std::to_string(folders.size()));
      ngrams::build(tiny::Shard(text).data(), folders.back(), {300, 64}, 1);
    }
    plan.index = std::make_shared<const ngrams::Index>(folders);
    for (std::int64_t b = 0; b < infer::kNgramBuckets; ++b)
      plan.lambda.push_back(0.04 * static_cast<double>(b + 1));
  }
  TemporaryFolder folder;
  infer::NgramPlan plan;
};

// The tokens that followed the longest suffix of a context with a continuation, by a search
// everywhere.
struct Scan {
  std::size_t length = 0;
  std::map<std::uint32_t, double> next;
  double all = 0;

  Scan(const std::vector<tiny::Text>& texts, std::span<const std::uint32_t> context) {
    for (length = std::min<std::size_t>(context.size(), 300);; --length) {
      look(texts, context.last(length));
      if (all > 0 || length == 0) return;
    }
  }
  void look(const std::vector<tiny::Text>& texts, std::span<const std::uint32_t> suffix) {
    for (const auto& text : texts)
      for (const auto& document : text.documents)
        for (std::size_t i = suffix.size(); i < document.size(); ++i)
          if (std::equal(suffix.begin(), suffix.end(), document.begin() + (i - suffix.size())))
            ++next[document[i]], ++all;
  }
  double p(std::uint32_t token) const {
    const auto found = next.find(token);
    return found == next.end() ? 0 : found->second / all;
  }
  std::int64_t bucket() const { return infer::ngram_bucket(length, next.size() == 1); }
};

// Checks that each scored token's n-gram score follows from the text before it, from `begin_of` on.
void expect_scanned(const infer::Scored& scored, const std::vector<tiny::Text>& texts,
    const Ids& tokens, const std::function<std::uint64_t(std::uint64_t)>& begin) {
  for (std::int64_t i = 0; i < scored.targets.size(0); ++i) {
    const std::uint64_t at = scored.first + static_cast<std::uint64_t>(i), from = begin(at);
    const Scan scan(texts, std::span(tokens).subspan(from, at - from));
    DOCTEST_CHECK(scored.parts.sources.back().bucket[i].item<std::int64_t>() == scan.bucket());
    const double p = std::exp(scored.parts.sources.back().separate[0][i].item<double>());
    DOCTEST_CHECK(p == doctest::Approx(scan.p(tokens[at])).epsilon(1e-12));
  }
}

// A text of which an index contains some stretches, and the texts of the index.
struct NgramCase {
  std::vector<tiny::Text> known = {
      tiny::text_of({400, 150}, tiny::kTypes, 5), tiny::text_of({200}, tiny::kTypes, 6)};
  tiny::Text text = tiny::text_of({120, 90, 0, 60}, tiny::kTypes, 7);
  NgramCase() {
    const auto& from = known[0].documents[0];
    std::copy_n(from.begin() + 100, 50, text.documents[0].begin() + 40);
    std::copy_n(from.begin() + 210, 30, text.documents[1].begin() + 20);
    std::copy_n(known[1].documents[0].begin() + 150, 50, text.documents[3].begin() + 5);
  }
};

}  // namespace

DOCTEST_TEST_CASE("buckets: lengths up to their bounds, and whether one token followed") {
  DOCTEST_CHECK(infer::ngram_bucket(0, false) == 0);
  DOCTEST_CHECK(infer::ngram_bucket(4, false) == 4);
  DOCTEST_CHECK(infer::ngram_bucket(5, false) == 5);
  DOCTEST_CHECK(infer::ngram_bucket(6, false) == 5);
  DOCTEST_CHECK(infer::ngram_bucket(31, false) == 8);
  DOCTEST_CHECK(infer::ngram_bucket(32, false) == 9);
  DOCTEST_CHECK(infer::ngram_bucket(1'000'000, true) == infer::kNgramBuckets - 1);
  DOCTEST_CHECK(infer::ngram_bucket(0, true) == infer::kNgramLengthBuckets);
  DOCTEST_CHECK(
      infer::ngram_weights({}, "--l").size() == static_cast<std::size_t>(infer::kNgramBuckets));
  DOCTEST_CHECK(thrown([] {
    infer::ngram_weights({0.1, 0.2}, "--l");
  }).names("--l: takes 1 or 20 weights, not 2"));
}

DOCTEST_TEST_CASE(
    "a text with n-grams, a cache and local memory is scored as plain loops have it") {
  const NgramCase of;
  const Indexed indexed(of.known);
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(of.text);
  const Ids tokens = of.text.tokens();
  for (const auto& [window, stride] : {std::pair{32, 32}, {32, 7}, {96, 48}}) {
    const auto windows = tiny::windows_of(window, stride);
    auto options = tiny::memory_of("local");
    tiny::cache(options).positions = 40, tiny::cache(options).lambda = 0.2;
    auto plan = infer::plan_memory(options, windows, model);
    auto rest = plain_scores(model, tokens, windows, plan);
    tiny::ngrams(plan) = indexed.plan;
    const Tensor found = tiny::log_probs(model, shard.data(), windows, plan);
    DOCTEST_REQUIRE(found.size(0) == std::ssize(rest));
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const Scan scan(of.known, std::span(tokens).first(i + 1));
      const double l = tiny::ngrams(plan).lambda[static_cast<std::size_t>(scan.bucket())];
      const double p = (1 - l) * std::exp(rest[i]) + l * scan.p(tokens[i + 1]);
      DOCTEST_CHECK(found[static_cast<std::int64_t>(i)].item<double>() ==
                    doctest::Approx(std::log(p)).epsilon(1e-4));
    }
  }
}

DOCTEST_TEST_CASE("n-grams see the whole stream, whatever windows, layouts and parts") {
  const NgramCase of;
  const Indexed indexed(of.known);
  const tiny::Shard shard(of.text);
  const Ids tokens = of.text.tokens();
  const auto check = [&](nn::Model& model, infer::WindowPlan windows) {
    for (const bool by_document : {false, true}) {
      windows.by_document = by_document;
      auto plan = infer::plan_memory({}, windows, model);
      tiny::ngrams(plan) = indexed.plan;
      for (const std::int64_t parts : {1, 3}) {
        std::int64_t scored = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          infer::Callbacks watch;
          watch.part = {part, parts};
          watch.scored = [&](const infer::Scored& block) {
            scored += block.targets.size(0);
            expect_scanned(block, of.known, tokens,
                [&](std::uint64_t at) { return of.text.begin_of(at, by_document); });
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
  windows.layout.closed = true;  // a token between two windows is not scored
  windows.stride = 32;
  check(model, windows);
  check(lstm, tiny::windows_of(25, 25, /*carried=*/true));
}

DOCTEST_TEST_CASE(
    "an index of the very text is left out; one of nothing leaves all to the others") {
  const NgramCase of;
  const Indexed both({of.text, of.known[0]}), alone({of.known[0]}), own({of.text});
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(of.text);
  const auto windows = tiny::windows_of(32, 32);
  auto plan = infer::plan_memory({}, windows, model);
  const Tensor bare = tiny::log_probs(model, shard.data(), windows, plan);
  const auto with = [&](const Indexed& indexed) {
    tiny::ngrams(plan) = indexed.plan;
    return tiny::log_probs(model, shard.data(), windows, plan);
  };
  DOCTEST_CHECK(torch::equal(with(both), with(alone)));
  DOCTEST_CHECK(torch::equal(with(own), bare));
  DOCTEST_CHECK(!torch::equal(with(alone), bare));
}

DOCTEST_TEST_CASE(
    "row by row: distributions that sum to 1, those of the plain mixture, as rows are chosen") {
  const NgramCase of;
  const Indexed indexed(of.known);
  const auto& from = of.known[0].documents[0];
  torch::manual_seed(1);
  infer::MemoryPlan plan;
  tiny::ngrams(plan) = indexed.plan;
  const auto source =
      infer::ngram_kind().open(plan, {32, true, 3, 8, torch::kFloat32}, infer::Grid{});
  const infer::Mixture mixture(plan);
  std::vector<Ids> texts = {{from.begin() + 20, from.begin() + 60}, {1, 2, 3}, {from[7]}};
  const auto read = [&](std::int64_t row, const Ids& tokens) {
    const std::vector<std::int64_t> wide(tokens.begin(), tokens.end());
    source->read(row, wide);
  };
  for (std::int64_t row = 0; row < 3; ++row) read(row, texts[static_cast<std::size_t>(row)]);
  for (const std::vector<std::int64_t>& rows :
      {std::vector<std::int64_t>{0, 1, 2}, {2, 0, 0, 1}, {1, 2}}) {
    source->select(torch::tensor(rows));
    std::vector<Ids> chosen;
    for (const auto row : rows) chosen.push_back(texts[static_cast<std::size_t>(row)]);
    texts = chosen;
    const auto n = std::ssize(rows);
    const Tensor words = torch::randn({n, tiny::kTypes}, torch::kFloat64).log_softmax(1);
    const auto own = source->score_vocabulary({{}, {}, {}, words, {}});
    infer::Components at{words, own.separate};
    at.gates.buckets["ngrams"] = own.bucket;
    const auto weights = mixture.weights(at.gates);
    const auto given = mixture.given(at, weights);
    const Tensor mixed = mixture.mix(at, weights);
    DOCTEST_CHECK(mixed.exp().sum(1).allclose(torch::ones({n}, torch::kFloat64)));
    for (std::int64_t row = 0; row < n; ++row) {
      const Scan scan(of.known, texts[static_cast<std::size_t>(row)]);
      const double l = indexed.plan.lambda[static_cast<std::size_t>(scan.bucket())];
      DOCTEST_CHECK(given[0][row].item<double>() == doctest::Approx(1 - l));
      for (std::int64_t word = 0; word < tiny::kTypes; ++word) {
        const double p = scan.p(static_cast<std::uint32_t>(word));
        const double found = mixed[row][word].exp().item<double>();
        DOCTEST_CHECK(
            found == doctest::Approx((1 - l) * words[row][word].exp().item<double>() + l * p));
        const auto evidence =
            source->evidence({row, word, std::log(found)}, {given[0], {}, {given[1]}}, 1, 1);
        DOCTEST_CHECK(evidence.share == doctest::Approx(l * p / found));
      }
      read(row, {from[5], from[6]});
      texts[static_cast<std::size_t>(row)].insert(
          texts[static_cast<std::size_t>(row)].end(), {from[5], from[6]});
    }
  }
}

DOCTEST_TEST_CASE("the probability of one token has the bits of the distribution's entry") {
  const NgramCase of;
  for (const auto& texts : {of.known, {of.known[1]}}) {
    const Indexed indexed(texts);
    infer::MemoryPlan plan;
    tiny::ngrams(plan) = indexed.plan;
    const auto open = [&] {
      return infer::ngram_kind().open(plan, {32, true, 1, 8, torch::kFloat32}, infer::Grid{});
    };
    const auto one = open(), all = open();
    const Ids text = of.text.tokens();
    const std::vector<std::int64_t> tokens(text.begin(), text.end());
    infer::Window window;
    window.before = {tokens[0]};
    const Tensor targets = torch::tensor(tokens).slice(0, 1);
    const auto recalled = one->recall(window, targets);
    all->read(0, {tokens.data(), 1});
    const Tensor head = torch::zeros({1, tiny::kTypes}, torch::kFloat64);
    for (std::int64_t i = 0; i < targets.size(0); ++i) {
      const auto row = all->score_vocabulary({{}, {}, {}, head, {}});
      const auto token = targets[i].item<std::int64_t>();
      DOCTEST_CHECK(row.separate[0][0][token].item<double>() == recalled[0][i].item<double>());
      DOCTEST_CHECK(row.bucket[0].item<std::int64_t>() == recalled[1][i].item<std::int64_t>());
      DOCTEST_CHECK(torch::equal(row.features[0], recalled[2][i]));
      all->read(0, {&token, 1});
    }
  }
}

DOCTEST_TEST_CASE(
    "tuning finds the best share of each bucket, and its loss is the text's with them") {
  const NgramCase of;
  const Indexed indexed(of.known);
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(of.text);
  const auto windows = tiny::windows_of(32, 32);
  infer::MemoryOptions options;
  tiny::cache(options).positions = 30;
  auto plan = infer::plan_memory(options, windows, model);
  infer::TuneOptions grid;
  grid.points["theta"] = {0.2, 0.5};
  grid.lambdas = {0, 0.1, 0.3, 0.6};
  tiny::ngrams(plan) = indexed.plan;
  const auto tuned = infer::tune(model, shard.data(), windows, plan, grid, torch::kCPU);
  // With all other values as chosen, bucket by bucket.
  auto rest = tuned.memory;
  tiny::ngrams(rest) = {};
  const Tensor bare = tiny::log_probs(model, shard.data(), windows, rest);
  std::vector<std::vector<double>> nats(infer::kNgramBuckets, std::vector<double>(4, 0));
  std::vector<int> seen(infer::kNgramBuckets, 0);
  const Ids tokens = of.text.tokens();
  for (std::int64_t i = 0; i < bare.size(0); ++i) {
    const Scan scan(of.known, std::span(tokens).first(static_cast<std::size_t>(i) + 1));
    const auto b = static_cast<std::size_t>(scan.bucket());
    ++seen[b];
    for (std::size_t k = 0; k < 4; ++k)
      nats[b][k] -= std::log((1 - grid.lambdas[k]) * std::exp(bare[i].item<double>()) +
                             grid.lambdas[k] * scan.p(tokens[static_cast<std::size_t>(i) + 1]));
  }
  int different = 0;
  for (std::size_t b = 0; b < nats.size(); ++b) {
    if (seen[b] == 0) continue;
    const auto best = std::min_element(nats[b].begin(), nats[b].end()) - nats[b].begin();
    DOCTEST_CHECK(
        tiny::ngrams(tuned.memory).lambda[b] == grid.lambdas[static_cast<std::size_t>(best)]);
    different += best > 0;
  }
  DOCTEST_CHECK(different > 2);
  const auto totals = infer::score(model, shard.data(), windows, tuned.memory, torch::kCPU);
  DOCTEST_CHECK(tuned.best.loss == doctest::Approx(totals.loss()).epsilon(1e-6));
}

DOCTEST_TEST_CASE("an index stays open between two plans, and is left out with its folder") {
  const NgramCase of;
  const TemporaryFolder folder;
  ngrams::build(tiny::Shard(of.known[0]).data(), folder / "index", {300, 64}, 1);
  model::Loaded loaded;
  loaded.model = std::make_shared<nn::Model>(tiny::model_of("transformer"));
  const auto windows = tiny::windows_of(32, 32);
  const infer::MemoryOptions without = tiny::memory_of("none");
  infer::MemoryOptions with = without;
  tiny::ngrams(with).folders = {folder / "index"};
  infer::OpenMemories open;
  const auto first = open.plan(with, windows, loaded);
  DOCTEST_CHECK(first.names() == std::vector<std::string>{"vocabulary", "n-grams"});
  DOCTEST_CHECK(!open.plan(without, windows, loaded).any());
  const auto again = open.plan(with, windows, loaded);
  DOCTEST_CHECK(tiny::ngrams(again).index == tiny::ngrams(first).index);
}
