// Continuations and texts, compared with one forward pass of all their tokens, log_softmax and a
// sum, and with plain loops over all memories.
#include "infer/answers/passage_scorer.h"
#include "infer/loops/make_engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "infer/sources/memory_options.h"
#include "infer/stores/stores.h"
#include "nn/base/architecture.h"
#include "plain_scores.h"
#include "store_of_keys.h"
#include "tiny.h"

namespace {

using infer::Passage;
using Tokens = std::vector<std::int64_t>;

Tokens tokens_of(std::size_t n, std::uint64_t seed = 3) {
  const auto text = tiny::text_of({n}, 23, seed).tokens();
  return {text.begin(), text.end()};
}

Passage passage_of(Tokens context, std::vector<Tokens> continuations) {
  return {std::move(context), std::move(continuations), false};
}

struct PlainScores {
  std::vector<double> log_prob;
  std::vector<bool> best;
};

// One forward pass over all tokens; returns those after the context.
PlainScores plain_passage(nn::Model& model, const Tokens& context, const Tokens& continuation) {
  const torch::NoGradGuard no_gradient;
  Tokens all = context;
  all.insert(all.end(), continuation.begin(), continuation.end());
  nn::Batch batch;
  batch.inputs = torch::tensor(Tokens(all.begin(), all.end() - 1)).unsqueeze(0);
  const auto at = torch::arange(batch.inputs.size(1)).unsqueeze(0);
  batch.targets = torch::zeros_like(batch.inputs);
  batch.weight = torch::ones(batch.inputs.sizes());
  batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
  batch.fresh = torch::ones({1}, torch::kBool);
  const auto f = model.architecture->forward(batch, nullptr).output[0];
  const auto words = model.head->log_probs(f).to(torch::kFloat64).log_softmax(1);
  PlainScores scores;
  for (std::size_t i = context.size(); i < all.size(); ++i) {
    const auto row = words[static_cast<std::int64_t>(i) - 1];
    scores.log_prob.push_back(row[all[i]].item<double>());
    scores.best.push_back(row.argmax().item<std::int64_t>() == all[i]);
  }
  return scores;
}

// The arguments of a scorer, with an engine from make_engine() or the model's own modules.
struct Scoring {
  Scoring(nn::Model& model, const infer::WindowPlan& windows, const infer::MemoryPlan& memory,
      bool modules = false, infer::TokenWants wants = {})
      : engine(modules ? std::make_unique<infer::ModuleEngine>(model, torch::kCPU)
                       : infer::make_engine(model, torch::kCPU, infer::Precision::float32)),
        scorer(model, *engine, windows, memory, model.vocabulary, wants) {}
  std::vector<std::vector<infer::TokenScores>> operator()(const std::vector<Passage>& passages) {
    return scorer.score(passages);
  }
  std::unique_ptr<infer::Engine> engine;
  infer::PassageScorer scorer;
};

// Returns the largest difference, relative to b where b is large.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return largest;
}

double tolerance(torch::Dtype dtype) { return dtype == torch::kFloat64 ? 1e-10 : 1e-5; }

}  // namespace

DOCTEST_TEST_CASE("continuations of shared contexts are what one forward of each gives") {
  for (const auto dtype : {torch::kFloat32, torch::kFloat64})
    for (const auto& arch : nn::architecture_names()) {
      if (nn::arch_facts(arch).reads_source) continue;
      for (const std::string positions : {"learned", "rope"}) {
        if (arch != "transformer" && positions != "rope") continue;
        DOCTEST_CAPTURE(arch);
        DOCTEST_CAPTURE(positions);
        auto model = tiny::model_of(arch, positions, 23, dtype);
        const bool carried = model.architecture->carry() == nn::Carry::constant;
        auto windows = tiny::windows_of(64, 64, carried);
        for (const std::int64_t batch_tokens : {4096, 60, 1}) {
          windows.batch_tokens = batch_tokens;
          Scoring score(model, windows, {});
          const Tokens long_context = tokens_of(20), short_context = tokens_of(3, 4);
          const std::vector<Passage> passages = {
              passage_of(long_context, {{1, 2, 3}, {5}, {1, 2, 4, 6}}),
              passage_of(short_context, {tokens_of(9, 8)}),
              passage_of(long_context, {{7, 7}}),
          };
          const auto scores = score(passages);
          for (std::size_t i = 0; i < passages.size(); ++i)
            for (std::size_t j = 0; j < passages[i].continuations.size(); ++j) {
              const auto expected =
                  plain_passage(model, passages[i].context, passages[i].continuations[j]);
              DOCTEST_CHECK(
                  difference(scores[i][j].log_prob, expected.log_prob) < tolerance(dtype));
              DOCTEST_CHECK(scores[i][j].best == expected.best);
            }
        }
      }
    }
}

DOCTEST_TEST_CASE(
    "a context is encoded once: for all choices, all requests together, and the next one") {
  // Counts the tokens that are fed.
  class Counting : public infer::ModuleEngine {
   public:
    using ModuleEngine::ModuleEngine;
    nn::Hidden feed(const std::vector<infer::RowInput>& feeds) override {
      for (const auto& feed : feeds) tokens += feed.tokens.size();
      return ModuleEngine::feed(feeds);
    }
    std::size_t tokens = 0;
  };
  for (const std::string arch : {"transformer", "lstm"}) {
    auto model = tiny::model_of(arch, "learned", 23, torch::kFloat64);
    Counting engine(model, torch::kCPU);
    const auto windows = tiny::windows_of(64, 64, arch == "lstm");
    infer::PassageScorer scorer(model, engine, windows, {}, 23);
    const Tokens context = tokens_of(20), other = tokens_of(21, 5);
    const auto fed = [&](const std::vector<Passage>& passages) {
      const std::size_t before = engine.tokens;
      const auto scores = scorer.score(passages);
      for (std::size_t i = 0; i < passages.size(); ++i)
        for (std::size_t j = 0; j < scores[i].size(); ++j) {
          const auto expected =
              plain_passage(model, passages[i].context, passages[i].continuations[j]);
          DOCTEST_CHECK(difference(scores[i][j].log_prob, expected.log_prob) < 1e-10);
        }
      return engine.tokens - before;
    };
    const auto one = passage_of(context, {{1, 2, 3}}), two = passage_of(context, {{4}, {5, 6}});
    DOCTEST_CHECK(fed({one, passage_of(other, {{7, 8}}), two}) == 20 + 2 + 21 + 1 + 0 + 1);
    DOCTEST_CHECK(fed({two}) == 20 + 1);
    DOCTEST_CHECK(fed({two, one}) == 0 + 1 + 2);
    DOCTEST_CHECK(fed({passage_of(context, {{9}})}) == 0);
    DOCTEST_CHECK(fed({one}) == 2);
    DOCTEST_CHECK(fed({passage_of(other, {{9}})}) == 21);
    DOCTEST_CHECK(fed({one}) == 20 + 2);
  }
}

DOCTEST_TEST_CASE("a context that does not fit is cut for all choices as the longest needs it") {
  auto model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  Scoring score(model, tiny::windows_of(16, 16), {});
  const Tokens context = tokens_of(40);
  const std::vector<Tokens> choices = {{1}, {2, 3, 4}};
  const auto scores = score({passage_of(context, choices)});
  const Tokens cut(context.end() - 14, context.end());
  for (std::size_t i = 0; i < choices.size(); ++i)
    DOCTEST_CHECK(
        difference(scores[0][i].log_prob, plain_passage(model, cut, choices[i]).log_prob) < 1e-10);
  DOCTEST_CHECK(score.scorer.longest() == 16);
  const auto longest = score({passage_of(context, {tokens_of(16, 5)})});
  DOCTEST_CHECK(difference(longest[0][0].log_prob,
                    plain_passage(model, {context.back()}, tokens_of(16, 5)).log_prob) < 1e-10);
}

namespace {

struct Memories {
  std::string name;
  infer::MemoryOptions options;
};

std::vector<Memories> memories(std::int64_t reach) {
  std::vector<Memories> all = {{"none", tiny::memory_of("none")},
      {"local", tiny::memory_of("local")}, {"long", tiny::memory_of("long", reach)},
      {"local and long", tiny::memory_of("local,long", reach)},
      {"interpolated", tiny::memory_of("local,long", reach)}, {"cache", tiny::memory_of("none")},
      {"all", tiny::memory_of("local,long", reach)}};
  for (auto& each : all) each.options.weights = "constant";
  tiny::context(all[4].options).combine = "interpolate";
  for (const std::size_t with_cache : {5, 6})
    tiny::cache(all[with_cache].options).positions = reach + 3;
  return all;
}

// Scores a continuation whose window holds the end of its context, by loops over pairs. Earlier
// context is encoded by consecutive windows.
std::vector<double> plain_continuation(nn::Model& model, const Tokens& context,
    const Tokens& continuation, std::int64_t window, const infer::MemoryPlan& memory) {
  const torch::NoGradGuard no_gradient;
  Tokens all = context;
  all.insert(all.end(), continuation.begin(), continuation.end());
  const auto n = std::ssize(all) - 1;
  const std::int64_t start = std::max<std::int64_t>(0, n - window);
  std::vector<torch::Tensor> f, g;  // of each position
  for (std::int64_t begin = 0; begin < n;) {
    const auto end = begin < start ? std::min(begin + window, start) : n;
    nn::Batch batch;
    batch.inputs = torch::tensor(Tokens(all.begin() + begin, all.begin() + end)).unsqueeze(0);
    const auto at = torch::arange(begin, end).unsqueeze(0);
    batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
    batch.targets = torch::zeros_like(at);
    batch.weight = torch::ones({1, end - begin});
    batch.fresh = torch::ones({1}, torch::kBool);
    const auto hidden = model.architecture->forward(batch, nullptr);
    for (std::int64_t i = 0; i < end - begin; ++i)
      f.push_back(hidden.output[0][i]), g.push_back(hidden.key[0][i]);
    begin = end;
  }
  const auto at = [](const auto& list, std::int64_t i) {
    return list[static_cast<std::size_t>(i)];
  };
  const double scale =
      1 / (std::sqrt(static_cast<double>(g[0].size(0))) * memory.joint_temperature);
  std::vector<double> log_probs;
  for (std::int64_t i = std::ssize(context) - 1; i < n; ++i) {
    torch::Tensor log_z;
    const auto words = model.head->log_probs(at(f, i).unsqueeze(0), &log_z);
    const double z = log_z.item<double>(), head = words[0][at(all, i + 1)].item<double>();
    double sum = 0, hit = 0, cache = 0, cache_hit = 0;
    for (std::int64_t j = 0; j < i; ++j) {
      const bool match = at(all, j + 1) == at(all, i + 1);
      if ((tiny::context(memory).rule.local && j >= start) ||
          (tiny::context(memory).rule.far && i - j <= tiny::context(memory).rule.reach)) {
        const double mass = std::exp(at(g, i).dot(at(g, j)).item<double>() * scale);
        sum += mass, hit += match ? mass : 0;
      }
      if (tiny::cache(memory).positions > 0 && i - j <= tiny::cache(memory).positions) {
        const double mass =
            std::exp(tiny::cache(memory).theta * at(f, i).dot(at(f, j)).item<double>());
        cache += mass, cache_hit += match ? mass : 0;
      }
    }
    const bool alone = tiny::context(memory).interpolated();
    const double joint =
        (std::exp(head + z) + (alone ? 0 : hit)) / (std::exp(z) + (alone ? 0 : sum));
    const double l_m = alone && sum > 0 ? tiny::context(memory).lambda : 0;
    const double l_c = cache > 0 ? tiny::cache(memory).lambda : 0;
    double p = (1 - l_m - l_c) * joint;
    if (l_m > 0) p += l_m * hit / sum;
    if (l_c > 0) p += l_c * cache_hit / cache;
    log_probs.push_back(std::log(p));
  }
  return log_probs;
}

}  // namespace

DOCTEST_TEST_CASE(
    "continuations with every memory are what loops over all pairs give, however far it reaches") {
  for (const auto dtype : {torch::kFloat32, torch::kFloat64})
    for (const std::string positions : {"learned", "rope"}) {
      auto model = tiny::model_of("transformer", positions, 23, dtype);
      auto windows = tiny::windows_of(16, 16);
      for (const std::int64_t reach : {5, 37})
        for (const auto& memory : memories(reach)) {
          DOCTEST_CAPTURE(memory.name);
          DOCTEST_CAPTURE(reach);
          const auto plan = infer::plan_memory(memory.options, windows, model);
          Scoring score(model, windows, plan);
          const Tokens before = tokens_of(50), choice = {3, 1, 4}, other = {2, 7, 1};
          for (const std::size_t n : {4, 14, 15, 50}) {
            const Tokens context(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(n));
            const auto together = score({passage_of(context, {choice, other})});
            const auto alone = score({passage_of(context, {other})});
            const auto expected = plain_continuation(model, context, choice, 16, plan);
            DOCTEST_CHECK(difference(together[0][0].log_prob, expected) < tolerance(dtype));
            DOCTEST_CHECK(
                difference(together[0][1].log_prob, alone[0][0].log_prob) < tolerance(dtype));
          }
        }
    }
}

DOCTEST_TEST_CASE("texts with every memory are what loops over their windows give") {
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    auto model = tiny::model_of("transformer", "learned", 23, dtype);
    for (const std::int64_t stride : {16, 5}) {
      auto windows = tiny::windows_of(16, stride);
      for (const std::int64_t batch_tokens : {4096, 20}) {
        windows.batch_tokens = batch_tokens;
        for (const auto& memory : memories(21)) {
          DOCTEST_CAPTURE(memory.name);
          const auto plan = infer::plan_memory(memory.options, windows, model);
          Scoring score(model, windows, plan);
          std::vector<Passage> passages;
          std::vector<std::vector<std::uint32_t>> texts;
          for (const std::size_t n : {50, 3, 17}) {
            texts.push_back(tiny::text_of({n}, 23, n).tokens());
            const auto& text = texts.back();
            passages.push_back({{text[0]}, {{text.begin() + 1, text.end()}}, true});
          }
          const auto scores = score(passages);
          for (std::size_t i = 0; i < texts.size(); ++i)
            DOCTEST_CHECK(difference(scores[i][0].log_prob,
                              plain_scores(model, texts[i], windows, plan)) < tolerance(dtype));
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("a text is what eval-ppl's scorer gives, where State is carried too") {
  for (const std::string arch :
      {"transformer", "lstm", "transformer-xl", "srupp", "gla", "mosaic", "mosaic2"}) {
    auto model = tiny::model_of(arch, "rope", 23, torch::kFloat64);
    const auto carry = model.architecture->carry();
    for (const bool carried : {false, true}) {
      if (carried && carry == nn::Carry::reencode) continue;
      for (const auto& options : {tiny::memory_of("none"), tiny::memory_of("local,long", 20)}) {
        DOCTEST_CAPTURE(arch);
        DOCTEST_CAPTURE(carried);
        const auto windows = tiny::windows_of(12, carried ? 6 : 12, carried);
        const auto text = tiny::text_of({45});
        const tiny::Shard shard(text);
        const auto plan = infer::plan_memory(options, windows, model);
        const auto expected = tiny::log_probs(model, shard.data(), windows, plan);
        Scoring score(model, windows, plan);
        const auto tokens = text.tokens();
        const auto scores = score({{{tokens[0]}, {{tokens.begin() + 1, tokens.end()}}, true}});
        const std::vector<double> values(
            expected.data_ptr<double>(), expected.data_ptr<double>() + expected.numel());
        DOCTEST_CHECK(difference(scores[0][0].log_prob, values) < 1e-10);
      }
    }
  }
}

DOCTEST_TEST_CASE("where State is carried a continuation is the end of a text, with every memory") {
  for (const std::string arch : {"lstm", "gla"}) {
    auto model = tiny::model_of(arch, "rope", 23, torch::kFloat64);
    const auto windows = tiny::windows_of(8, 8, true);
    for (const auto& memory : memories(19)) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(memory.name);
      Scoring score(model, windows, infer::plan_memory(memory.options, windows, model));
      const Tokens all = tokens_of(41);
      const auto at = [&](std::ptrdiff_t n) { return all.begin() + n; };
      const auto whole = score({{{all[0]}, {{at(1), at(41)}}, true}});
      const auto end = score({passage_of({at(0), at(30)}, {{4, 4}, {at(30), at(41)}})});
      const auto& expected = whole[0][0].log_prob;
      DOCTEST_CHECK(difference(end[0][1].log_prob, {expected.end() - 11, expected.end()}) < 1e-10);
    }
  }
}

DOCTEST_TEST_CASE("datastores are searched for what is scored, together with all other memories") {
  auto model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  const TemporaryFolder folder;
  const auto stored = tiny::entries_of(60, model.architecture->d_key(), 23, 5);
  tiny::make_store(folder / "store", stored, 23);
  const auto windows = tiny::windows_of(64, 64);
  for (const std::string combine : {"joint", "interpolate", "both"}) {
    DOCTEST_CAPTURE(combine);
    auto options = tiny::memory_of("local,long", 11);
    tiny::cache(options).positions = 7;
    tiny::context(options).combine = combine;
    tiny::stores(options).folders = {folder / "store"};
    tiny::stores(options).k = 40;
    options.joint_temperature = 0.15;  // so that memories weigh as much as the head
    const auto opened = std::make_shared<const infer::Stores>(
        infer::open_each(tiny::stores(options).folders, torch::empty({0})), "m", "t", "test",
        model.architecture->d_key(), 23);
    const auto plan = infer::plan_memory(options, windows, model, {}, tiny::opened(opened));
    Scoring score(model, windows, plan);
    const Tokens context = tokens_of(20), choice = {3, 1, 4};
    const auto scores = score({passage_of(context, {{5, 5}, choice})});
    std::vector<std::uint32_t> all(context.begin(), context.end());
    all.insert(all.end(), choice.begin(), choice.end());
    const auto expected = plain_scores(model, all, windows, plan, stored);
    DOCTEST_CHECK(difference(scores[0][1].log_prob, {expected.end() - 3, expected.end()}) < 1e-5);
  }
}

// Orders shares by source as MemoryPlan::names() does.
std::vector<double> in_order(const PlainShares& of, const infer::MemoryPlan& plan) {
  std::vector<double> shares{of.vocabulary};
  if (tiny::context(plan).rule.local) shares.push_back(of.local);
  if (tiny::context(plan).rule.far) shares.push_back(of.far);
  if (tiny::cache(plan).positions > 0) shares.push_back(of.cache);
  if (tiny::stores(plan).any()) shares.push_back(of.stores);
  return shares;
}

DOCTEST_TEST_CASE("shares of the sources are those of the plain loops, ranks those of all words") {
  const TemporaryFolder folder;
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    auto model = tiny::model_of("transformer", "learned", 23, dtype);
    const auto width = model.architecture->d_key();
    const auto name = folder / (dtype == torch::kFloat32 ? "narrow" : "wide");
    const auto stored = tiny::entries_of(60, width, 23, 5);
    tiny::make_store(name, stored, 23);
    auto all_memories = memories(21);
    for (const std::string combine : {"joint", "interpolate", "both"}) {
      auto with_store = all_memories[6];
      with_store.name = "store, " + combine;
      tiny::stores(with_store.options).folders = {name};
      tiny::stores(with_store.options).k = 40;
      tiny::stores(with_store.options).combine = combine;
      with_store.options.joint_temperature = 0.15;
      all_memories.push_back(with_store);
    }
    for (const std::int64_t stride : {16, 5})
      for (const auto& memory : all_memories) {
        DOCTEST_CAPTURE(memory.name);
        DOCTEST_CAPTURE(stride);
        const auto windows = tiny::windows_of(16, stride);
        const auto opened =
            tiny::stores(memory.options).folders.empty()
                ? nullptr
                : std::make_shared<const infer::Stores>(
                      infer::open_each(tiny::stores(memory.options).folders, torch::empty({0})),
                      "m", "t", "test", width, 23);
        const auto plan =
            infer::plan_memory(memory.options, windows, model, {}, tiny::opened(opened));
        Scoring score(model, windows, plan, false, {nullptr, true, 4});
        const auto text = tiny::text_of({50}, 23).tokens();
        const auto scores = score({{{text[0]}, {{text.begin() + 1, text.end()}}, true}})[0][0];
        std::vector<PlainShares> expected;
        plain_scores(model, text, windows, plan, stored, false, &expected);
        const auto names = plan.names();
        DOCTEST_REQUIRE(scores.details.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto& details = scores.details[i];
          const auto shares = in_order(expected[i], plan);
          DOCTEST_REQUIRE(details.shares.size() == names.size());
          for (std::size_t j = 0; j < shares.size(); ++j)
            DOCTEST_CHECK(std::abs(details.shares[j] - shares[j]) <
                          (dtype == torch::kFloat64 && !tiny::stores(plan).any() ? 1e-10 : 2e-5));
          DOCTEST_CHECK((details.rank == 0) == scores.best[i]);
          DOCTEST_REQUIRE(details.likely.size() == 4);
          if (details.rank < 4) {
            const auto& [word, p] = details.likely[static_cast<std::size_t>(details.rank)];
            DOCTEST_CHECK(word == text[i + 1]);
            DOCTEST_CHECK(std::abs(p - std::exp(scores.log_prob[i])) < 1e-6);
          } else {
            DOCTEST_CHECK(std::exp(scores.log_prob[i]) <= details.likely[3].second);
          }
        }
      }
  }
}
