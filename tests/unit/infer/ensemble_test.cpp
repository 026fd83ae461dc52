// Further models in a mixture, compared with the sum of the results of each: scores, parts, whole
// rows, continuations, tuning.
#include <doctest/doctest.h>

#include <cmath>

#include "infer/answers/passage_scorer.h"
#include "infer/generate/decode_session.h"
#include "infer/score/tune.h"
#include "infer/sources/ensemble.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

constexpr double kNear = 1e-9;

std::shared_ptr<infer::EnsembleModel> with_of(const std::string& arch, std::int64_t window,
    std::int64_t stride, const char* positions = "learned", std::int64_t vocabulary = 23) {
  auto member = std::make_shared<infer::EnsembleModel>();
  member->loaded.folder = arch;
  member->loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, positions, vocabulary));
  member->windows.window = window, member->windows.stride = stride;
  member->windows.batch_tokens = 70;
  return member;
}

// An LSTM with carried State and a transformer with a smaller window, together with a transformer.
struct WithCase {
  tiny::Text text = tiny::text_of({90, 40, 0, 61});
  tiny::Shard shard{text};
  nn::Model model = tiny::model_of("transformer");
  infer::EnsemblePlan plan{{{"lstm", 0.2}, {"transformer", 0.35}},
      {with_of("lstm", 24, 24), with_of("transformer", 16, 9, "alibi")}};

  // Returns log p of every scored token by one further model alone.
  Tensor alone(std::size_t i) const {
    const auto& member = *plan.models[i];
    const auto windows = infer::plan_windows(
        member.windows, *member.loaded.model, member.loaded.facts, shard.data());
    return tiny::log_probs(*member.loaded.model, shard.data(), windows, infer::MemoryPlan{});
  }
};

Tensor mixed(const std::vector<std::pair<double, Tensor>>& sources) {
  Tensor sum = torch::zeros_like(sources[0].second);
  for (const auto& [share, log_prob] : sources) sum += share * log_prob.exp();
  return sum.log();
}

// log p (V) of what follows each token of a text by a model alone.
std::vector<Tensor> rows_after(const tiny::Text& text, nn::Model& model) {
  infer::ModuleEngine engine(model, torch::kCPU);
  infer::Session session(engine, model, 96, {}, torch::kCPU);
  std::vector<Tensor> rows;
  for (const auto token : text.documents[0]) {
    if (rows.empty()) {
      session.start({{token}});
    } else {
      session.advance({token});
    }
    rows.push_back(session.log_probs()[0].to(torch::kFloat64));
  }
  return rows;
}

// p^(1/t) over the sum of all, word by word.
Tensor tempered(const Tensor& log_p, double t) {
  double sum = 0;
  for (std::int64_t w = 0; w < log_p.size(0); ++w) sum += std::exp(log_p[w].item<double>() / t);
  Tensor found = torch::empty_like(log_p);
  for (std::int64_t w = 0; w < log_p.size(0); ++w)
    found[w] = log_p[w].item<double>() / t - std::log(sum);
  return found;
}

}  // namespace

DOCTEST_TEST_CASE("shares: given, or alike of what is left; a folder may have a colon") {
  infer::EnsembleOptions options;
  options.models = {"a:0.4", "b", "c:auto", "d:e"};
  const auto shares = options.shares();
  DOCTEST_REQUIRE(shares.size() == 4);
  DOCTEST_CHECK(shares[0].folder == "a");
  DOCTEST_CHECK(shares[0].lambda == 0.4);
  for (int i = 1; i < 4; ++i) DOCTEST_CHECK(shares[i].lambda == doctest::Approx(0.15));
  DOCTEST_CHECK(shares[2].folder == "c");
  DOCTEST_CHECK(shares[3].folder == "d:e");
  options.models = infer::ensemble_texts(shares);
  DOCTEST_CHECK(options.shares()[3].folder == "d:e");
  DOCTEST_CHECK(options.shares()[3].lambda == shares[3].lambda);
  options.models = {"a:gate", "b:0.4"};
  const auto gated = options.shares();
  DOCTEST_CHECK(gated[0].gated);
  DOCTEST_CHECK(!gated[1].gated);
  DOCTEST_CHECK(gated[0].lambda == doctest::Approx(0.3));
  DOCTEST_CHECK(infer::ensemble_texts(gated) == options.models);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"a:1"}, {"a:-0.1"},
           {"a:nan"}, {":0.2"}, {"a:0.5", "b:0.5"}, {"a:gate", "b:gate"}}) {
    options.models = wrong;
    DOCTEST_CHECK(thrown([&] { options.shares(); }).code == 64);
  }
}

DOCTEST_TEST_CASE("a mixture is the sum of what each model gives alone, whatever their windows") {
  WithCase of;
  nn::Model& model = of.model;
  for (const bool by_document : {false, true}) {
    auto windows = tiny::windows_of(32, 13);
    windows.by_document = by_document;
    for (const auto& member : of.plan.models)
      std::const_pointer_cast<infer::EnsembleModel>(member)->windows.restart =
          by_document ? "document" : "none";
    auto options = tiny::memory_of("local");
    tiny::cache(options).positions = 40, tiny::cache(options).lambda = 0.1;
    auto plan = infer::plan_memory(options, windows, model);
    tiny::ensemble(plan) = of.plan;
    std::vector<Tensor> joint, cache, found;
    infer::Callbacks watch;
    watch.scored = [&](const infer::Scored& scored) {
      const auto at = scored.parts.at(plan);
      const Tensor own = at.joint, seen = at.separate[0];
      joint.push_back(own);
      cache.push_back(torch::where(seen.isnan(), own, seen));
      found.push_back(scored.log_prob);
    };
    infer::score(model, of.shard.data(), windows, plan, torch::kCPU, watch);
    const Tensor expected = mixed({{1 - 0.1 - 0.2 - 0.35, torch::cat(joint)},
        {0.1, torch::cat(cache)}, {0.2, of.alone(0)}, {0.35, of.alone(1)}});
    DOCTEST_CHECK(tiny::largest_difference(torch::cat(found), expected) < kNear);
    // Parts may begin anywhere.
    Tensor parts = torch::zeros({0}, torch::kFloat64);
    for (std::int64_t part = 0; part < 3; ++part) {
      watch.part = {part, 3};
      watch.scored = [&](const infer::Scored& scored) {
        parts = torch::cat({parts, scored.log_prob});
      };
      infer::score(model, of.shard.data(), windows, plan, torch::kCPU, watch);
    }
    DOCTEST_CHECK(tiny::largest_difference(parts, expected) < kNear);
  }
}

DOCTEST_TEST_CASE("a token that the windows of a further model leave out is the others'") {
  WithCase of;
  nn::Model& model = of.model;
  const auto windows = tiny::windows_of(32, 32);
  infer::MemoryPlan plan;
  tiny::ensemble(plan) = {{{"lstm", 0.4}}, {with_of("transformer", 24, 24, "alibi")}};
  std::const_pointer_cast<infer::EnsembleModel>(tiny::ensemble(plan).models[0])->windows.protocol =
      "llama.cpp";
  const Tensor own = tiny::log_probs(model, of.shard.data(), windows, infer::MemoryPlan{});
  std::vector<Tensor> found, theirs;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    found.push_back(scored.log_prob);
    theirs.push_back(scored.parts.at(plan).separate[0]);
  };
  infer::score(model, of.shard.data(), windows, plan, torch::kCPU, watch);
  const Tensor with = torch::cat(theirs);
  const auto missing = with.isnan().sum().item<std::int64_t>();
  DOCTEST_CHECK(missing > 60);
  DOCTEST_CHECK(missing < with.size(0));
  const Tensor expected = mixed({{0.6, own}, {0.4, torch::where(with.isnan(), own, with)}});
  DOCTEST_CHECK(tiny::largest_difference(torch::cat(found), expected) < kNear);
}

DOCTEST_TEST_CASE("rows of words, as texts grow and are chosen: the mixture of the models' own") {
  nn::Model model = tiny::model_of("transformer");
  infer::MemoryPlan plan;
  tiny::ensemble(plan) = {{{"lstm", 0.2}, {"transformer", 0.35}},
      {with_of("lstm", 0, 0), with_of("transformer", 7, 7, "learned", 30)}};
  const auto session_of = [](nn::Model& of, std::int64_t window, const infer::MemoryPlan& memory) {
    auto engine = std::make_unique<infer::ModuleEngine>(of, torch::kCPU);
    return std::pair{std::move(engine), [&of, window, memory](infer::Engine& by) {
                       return std::make_unique<infer::Session>(by, of, window, memory, torch::kCPU);
                     }};
  };
  std::vector<std::unique_ptr<infer::Engine>> engines;
  std::vector<std::unique_ptr<infer::Session>> sessions;
  const auto add = [&](nn::Model& of, std::int64_t window, const infer::MemoryPlan& memory) {
    auto [engine, make] = session_of(of, window, memory);
    sessions.push_back(make(*engine));
    engines.push_back(std::move(engine));
  };
  add(model, 12, plan);
  add(model, 12, {});
  add(*tiny::ensemble(plan).models[0]->loaded.model, 512, {});
  add(*tiny::ensemble(plan).models[1]->loaded.model, 7, {});
  const auto each = [&](const auto& body) {
    for (const auto& session : sessions) body(*session);
  };
  each([](auto& session) { session.start({{1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11}}); });
  for (std::int64_t step = 0; step < 12; ++step) {
    if (step == 5) each([](auto& session) { session.select({1, 0, 1}); });
    std::vector<Tensor> rows;
    for (const auto& session : sessions) rows.push_back(session->log_probs().to(torch::kFloat64));
    DOCTEST_REQUIRE(rows[0].size(1) == 23);
    const Tensor expected =
        mixed({{0.45, rows[1]}, {0.2, rows[2]}, {0.35, rows[3].slice(1, 0, 23)}});
    DOCTEST_CHECK(tiny::largest_difference(rows[0], expected) < 1e-5);
    const std::vector<std::int64_t> next = {step % 23, (7 * step) % 23, (3 * step) % 23};
    each([&](auto& session) { session.advance({next.begin(), next.begin() + session.rows()}); });
  }
}

DOCTEST_TEST_CASE("passages: texts as data sets, continuations as texts that end with them") {
  nn::Model model = tiny::model_of("transformer");
  infer::WindowOptions options;
  options.window = 32, options.stride = 16;
  const auto windows = infer::plan_windows(options, model);
  infer::MemoryPlan plan;
  tiny::ensemble(plan) = {{{"lstm", 0.3}, {"transformer", 0.25}},
      {with_of("lstm", 24, 24), with_of("transformer", 40, 40, "alibi")}};
  infer::ModuleEngine engine(model, torch::kCPU);
  infer::PassageScorer scorer(model, engine, windows, plan, 23);
  const auto tokens = tiny::text_of({80}).documents[0];
  std::vector<std::int64_t> wide(tokens.begin(), tokens.end());
  const tiny::Shard shard(tiny::text_of({80}));
  infer::Passage text, choices;
  text.text = true;
  text.context = {wide[0]};
  text.continuations = {{wide.begin() + 1, wide.end()}};
  choices.context = {wide.begin(), wide.begin() + 10};
  choices.continuations = {
      {wide.begin() + 10, wide.begin() + 13}, {wide.begin() + 10, wide.begin() + 11}};
  const auto scores = scorer.score(std::vector{text, choices});
  const auto expect = [](const std::vector<double>& found, const Tensor& expected) {
    DOCTEST_REQUIRE(std::ssize(found) == expected.size(0));
    for (std::int64_t i = 0; i < expected.size(0); ++i)
      DOCTEST_CHECK(found[static_cast<std::size_t>(i)] ==
                    doctest::Approx(expected[i].item<double>()).epsilon(1e-5));
  };
  const Tensor whole = tiny::log_probs(model, shard.data(), windows, plan);
  expect(scores[0][0].log_prob, whole);
  expect(scores[1][0].log_prob, whole.slice(0, 9, 12));
  expect(scores[1][1].log_prob, whole.slice(0, 9, 10));
}

DOCTEST_TEST_CASE("tuning finds the best shares of a grid, by trying each") {
  WithCase of;
  nn::Model& model = of.model;
  const auto windows = tiny::windows_of(32, 32);
  auto options = tiny::memory_of("none");
  tiny::cache(options).positions = 30;
  auto plan = infer::plan_memory(options, windows, model);
  tiny::ensemble(plan) = of.plan;
  infer::TuneOptions grid;
  grid.points["theta"] = {0.3}, grid.points["ensemble-temperature"] = {1};
  grid.lambdas = {0, 0.15, 0.3, 0.45};
  const auto tuned = infer::tune(model, of.shard.data(), windows, plan, grid, torch::kCPU);
  double best = HUGE_VAL;
  auto tried = plan;
  tiny::cache(tried).theta = 0.3;
  std::size_t points = 0;
  for (const double cache : grid.lambdas)
    for (const double first : grid.lambdas)
      for (const double second : grid.lambdas) {
        if (cache + first + second > 1 - 1e-9) continue;
        ++points;
        tiny::cache(tried).lambda = cache;
        tiny::ensemble(tried).shares[0].lambda = first,
        tiny::ensemble(tried).shares[1].lambda = second;
        best = std::min(
            best, infer::score(model, of.shard.data(), windows, tried, torch::kCPU).loss());
      }
  DOCTEST_CHECK(tuned.points.size() == points);
  DOCTEST_CHECK(tuned.best.loss == doctest::Approx(best).epsilon(1e-12));
  DOCTEST_CHECK(infer::score(model, of.shard.data(), windows, tuned.memory, torch::kCPU).loss() ==
                doctest::Approx(best).epsilon(1e-12));
}

DOCTEST_TEST_CASE("each further model has its own temperature, in windows and token by token") {
  const torch::NoGradGuard no_gradient;
  nn::Model model = tiny::model_of("transformer");
  const tiny::Text text = tiny::text_of({60});
  const tiny::Shard shard(text);
  infer::MemoryPlan plan;
  tiny::ensemble(plan) = {{{"lstm", 0.2}, {"transformer", 0.35}},
      {with_of("lstm", 96, 96), with_of("transformer", 96, 96, "alibi")}};
  const double first = 0.6, second = 1.8;
  tiny::ensemble(plan).shares[0].temperature = first,
  tiny::ensemble(plan).shares[1].temperature = second;
  const auto own = rows_after(text, model),
             lstm = rows_after(text, *tiny::ensemble(plan).models[0]->loaded.model),
             other = rows_after(text, *tiny::ensemble(plan).models[1]->loaded.model);
  const Tensor scored = tiny::log_probs(model, shard.data(), tiny::windows_of(96, 96), plan);
  infer::ModuleEngine engine(model, torch::kCPU);
  infer::Session session(engine, model, 96, plan, torch::kCPU);
  session.start({{text.documents[0][0]}});
  for (std::size_t i = 0; i + 1 < own.size(); ++i) {
    const Tensor expected = mixed(
        {{0.45, own[i]}, {0.2, tempered(lstm[i], first)}, {0.35, tempered(other[i], second)}});
    const auto next = static_cast<std::int64_t>(text.documents[0][i + 1]);
    DOCTEST_CHECK(tiny::largest_difference(session.log_probs()[0], expected) < 1e-5);
    DOCTEST_CHECK(std::abs(scored[static_cast<std::int64_t>(i)].item<double>() -
                           expected[next].item<double>()) < 1e-5);
    session.advance({next});
  }
}

DOCTEST_TEST_CASE("tuning finds temperatures of further models, and its loss is the text's") {
  WithCase of;
  const auto windows = tiny::windows_of(32, 32);
  auto options = tiny::memory_of("none");
  tiny::cache(options).positions = 30;
  tiny::ensemble(options).models = {"lstm:0.2", "transformer:0.35"};
  const auto plan_of = [&](const infer::MemoryOptions& from) {
    auto plan = infer::plan_memory(from, windows, of.model);
    tiny::ensemble(plan).models = of.plan.models;
    return plan;
  };
  const auto loss_of = [&](const infer::MemoryPlan& plan) {
    return infer::score(of.model, of.shard.data(), windows, plan, torch::kCPU).loss();
  };
  const auto tune = [&](const std::vector<double>& temperatures) {
    infer::TuneOptions grid;
    grid.points["theta"] = {0.1, 0.3, 1};
    grid.points["ensemble-temperature"] = temperatures;
    return infer::tune(of.model, of.shard.data(), windows, plan_of(options), grid, torch::kCPU);
  };
  const auto plain = tune({1}), given = tune({0.5, 1, 2}), open = tune({});
  DOCTEST_CHECK(given.best.loss < plain.best.loss - 0.001);
  DOCTEST_CHECK(open.best.loss < given.best.loss + 1e-9);
  for (const auto* const tuned : {&plain, &given, &open}) {
    DOCTEST_CHECK(loss_of(tuned->memory) == doctest::Approx(tuned->best.loss).epsilon(1e-6));
    DOCTEST_CHECK(loss_of(plan_of(infer::settled(options, tuned->memory))) ==
                  doctest::Approx(tuned->best.loss).epsilon(1e-6));
    DOCTEST_CHECK(tiny::ensemble(infer::settled(options, tuned->memory)).temperatures.empty() ==
                  (tuned == &plain));
  }
  // No other temperature of one model is better, with the weights that were found.
  for (std::size_t i = 0; i < 2; ++i)
    for (const double temperature : {0.5, 1.0, 2.0}) {
      auto other = given.memory;
      tiny::ensemble(other).shares[i].temperature = temperature;
      DOCTEST_CHECK(loss_of(other) > given.best.loss - 1e-3);
    }
  tiny::ensemble(options).temperatures = {1.5};
  for (const auto& share : tiny::ensemble(options).shares())
    DOCTEST_CHECK(share.temperature == 1.5);
  tiny::ensemble(options).temperatures = {1, 1, 1};
  DOCTEST_CHECK(thrown([&] {
    tiny::ensemble(options).shares();
  }).names("--ensemble-temperature: takes 1 or 2 temperatures, not 3"));
}

DOCTEST_TEST_CASE("a gate gives a further model its share, in windows and token by token") {
  const torch::NoGradGuard no_gradient;
  nn::Model model = tiny::model_of("transformer");
  const tiny::Text text = tiny::text_of({60});
  const tiny::Shard shard(text);
  const auto windows = tiny::windows_of(96, 96);
  infer::MemoryPlan plan;
  tiny::ensemble(plan) = {{{"lstm", 0.2, true}, {"transformer", 0.35}},
      {with_of("lstm", 96, 96), with_of("transformer", 96, 96, "alibi")}};
  plan.gates.sources = {"ensemble"};
  const std::vector<double> weights = {0.2, -1, 0.1, -0.3, 0.7, 0.05};
  plan.gates.gate.rows = {{"ensemble", {0.2}, 0.3, weights}};
  const auto own = rows_after(text, model),
             lstm = rows_after(text, *tiny::ensemble(plan).models[0]->loaded.model),
             other = rows_after(text, *tiny::ensemble(plan).models[1]->loaded.model);
  const auto sure = [](const Tensor& log_p) {
    double entropy = 0, top = 0;
    for (std::int64_t w = 0; w < log_p.size(0); ++w) {
      const double l = log_p[w].item<double>();
      entropy -= std::exp(l) * l, top = std::max(top, std::exp(l));
    }
    return std::vector<double>{entropy, top, std::log(top)};
  };
  const Tensor scored = tiny::log_probs(model, shard.data(), windows, plan);
  infer::ModuleEngine engine(model, torch::kCPU);
  infer::Session session(engine, model, 96, plan, torch::kCPU);
  session.start({{text.documents[0][0]}});
  double least = 1, most = 0;
  for (std::size_t i = 0; i + 1 < own.size(); ++i) {
    auto x = sure(own[i]);
    for (const double more : sure(lstm[i])) x.push_back(more);
    double z = std::log(0.2 / 0.8) + 0.3;
    for (std::size_t j = 0; j < x.size(); ++j) z += weights[j] * x[j];
    const double share = 1 / (1 + std::exp(-z));
    least = std::min(least, share), most = std::max(most, share);
    const Tensor expected = mixed({{(1 - share) * 0.45 / 0.8, own[i]},
        {(1 - share) * 0.35 / 0.8, other[i]}, {share, lstm[i]}});
    const auto next = static_cast<std::int64_t>(text.documents[0][i + 1]);
    DOCTEST_CHECK(tiny::largest_difference(session.log_probs()[0], expected) < 1e-5);
    DOCTEST_CHECK(std::abs(scored[static_cast<std::int64_t>(i)].item<double>() -
                           expected[next].item<double>()) < 1e-5);
    session.advance({next});
  }
  DOCTEST_CHECK(most - least > 0.01);
}

DOCTEST_TEST_CASE(
    "a further model's gate is fitted, no worse than its best constant, and reads back") {
  WithCase of;
  const auto windows = tiny::windows_of(32, 32);
  auto options = tiny::memory_of("none");
  tiny::ensemble(options).models = {"lstm:gate", "transformer:0.3"};
  auto plan = infer::plan_memory(options, windows, of.model);
  DOCTEST_CHECK(plan.gates.sources == std::vector<std::string>{"ensemble"});
  tiny::ensemble(plan).models = of.plan.models;
  const auto tuned = infer::tune(of.model, of.shard.data(), windows, plan, {}, torch::kCPU);
  DOCTEST_REQUIRE(tuned.gates.has_value());
  DOCTEST_CHECK(tuned.gates->second <= tuned.gates->first);
  DOCTEST_CHECK(tuned.gates->first == doctest::Approx(tuned.best.loss).epsilon(1e-4));
  const auto totals = infer::score(of.model, of.shard.data(), windows, tuned.memory, torch::kCPU);
  DOCTEST_CHECK(totals.loss() == doctest::Approx(tuned.gates->second).epsilon(1e-5));
  const auto settled = infer::settled(options, tuned.memory);
  DOCTEST_CHECK(tiny::ensemble(settled).models[0] == "lstm:gate");
  auto again = infer::plan_memory(settled, windows, of.model);
  tiny::ensemble(again).models = of.plan.models;
  DOCTEST_CHECK(infer::score(of.model, of.shard.data(), windows, again, torch::kCPU).loss() ==
                doctest::Approx(totals.loss()).epsilon(1e-9));
}
