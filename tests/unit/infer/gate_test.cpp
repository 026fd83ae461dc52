// Gates: their texts, their weights, and the mixture, compared with plain loops.
#include "infer/sources/gate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "infer/score/scorer.h"
#include "infer/score/tune.h"
#include "infer/sources/store_lookup.h"
#include "infer/stores/stores.h"
#include "infer/windows/head_rows.h"
#include "infer/windows/windows.h"
#include "ngrams/ngrams_builder.h"
#include "nn/base/torch.h"
#include "store_of_keys.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using tiny::value;
using torch::Tensor;

// A model with a cache, a store and n-grams, each with a gate.
struct Gated {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  TemporaryFolder folder;
  tiny::Text text = tiny::text_of({90, 60}, tiny::kTypes, 7);
  tiny::Shard shard{text};
  infer::WindowPlan windows = tiny::windows_of(24, 8);
  infer::MemoryPlan plan;
  explicit Gated(const std::set<std::string>& sources) {
    const auto entries = tiny::entries_of(150, model.architecture->d_key(), tiny::kTypes, 1);
    tiny::make_store(folder / "store", entries, tiny::kTypes, {"ip", "exact", "other"});
    ngrams::build(
        tiny::Shard(tiny::text_of({300}, tiny::kTypes, 5)).data(), folder / "ngrams", {300, 64}, 1);
    auto options = tiny::memory_of("local");
    tiny::cache(options).positions = 40, tiny::cache(options).lambda = 0.15;
    tiny::stores(options).folders = {folder / "store"},
    tiny::stores(options).combine = "interpolate";
    tiny::stores(options).k = 40, tiny::stores(options).lambda = 0.2,
    tiny::stores(options).temperature = 2;
    plan = infer::plan_memory(options, windows, model, {},
        tiny::opened(std::make_shared<const infer::Stores>(
            infer::open_each(tiny::stores(options).folders, torch::empty({0})), "m", "t", "model",
            model.architecture->d_key(), tiny::kTypes)));
    tiny::ngrams(plan).index =
        std::make_shared<const ngrams::Index>(std::vector<std::string>{folder / "ngrams"});
    tiny::ngrams(plan).lambda.clear();
    for (std::int64_t b = 0; b < infer::kNgramBuckets; ++b)
      tiny::ngrams(plan).lambda.push_back(0.04 * static_cast<double>(b + 1));
    for (const auto* const kind : infer::gate_kinds())
      if (sources.contains(kind->name())) plan.gates.sources.push_back(kind->name());
  }
  // Sets a gate with these constants and different weights, or with zero weights.
  void fit(double size) {
    infer::Gate& gate = plan.gates.gate;
    double weight = size;
    for (const auto* const kind : infer::gate_kinds()) {
      if (!plan.gates.has(kind->name())) continue;
      infer::GateRow row;
      row.source = kind->name();
      row.constants = kind->name() == "cache"       ? std::vector<double>{tiny::cache(plan).lambda}
                      : kind->name() == "datastore" ? std::vector<double>{tiny::stores(plan).lambda}
                                                    : tiny::ngrams(plan).lambda;
      row.bias = weight;
      for (std::size_t i = 0; i < infer::kConfidence.size() + kind->facts().gate.features.size();
           ++i)
        row.weights.push_back(weight *= -0.9);
      gate.rows.push_back(row);
    }
    if (plan.gates.has("datastore"))
      gate.search =
          infer::GateRow{"search", {tiny::stores(plan).lambda}, 0.1 * size, {size, -size, 0}};
  }
};

std::vector<infer::Scored> scored_of(Gated& of) {
  std::vector<infer::Scored> all;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) { all.push_back(scored); };
  infer::score(of.model, of.shard.data(), of.windows, of.plan, torch::kCPU, watch);
  return all;
}

// Returns log p of the i-th target, from scores, weights and sources one by one.
double plain_mix(const infer::Scored& scored, std::int64_t i, const infer::MemoryPlan& plan) {
  const infer::Components at = scored.parts.at(plan);  // with a cache, a store and n-grams
  const double joint = std::exp(value(at.joint, i));
  const double cache_log = value(at.separate[0], i), stores_log = value(at.separate[1], i);
  const double cache = std::isnan(cache_log) ? joint : std::exp(cache_log);
  const double stores = std::isnan(stores_log) ? joint : std::exp(stores_log);
  const double ngrams = std::exp(value(at.separate[2], i));
  const auto bucket = at.gates.buckets.at("ngrams")[i].item<std::int64_t>();
  const double l_c = tiny::cache(plan).lambda, l_s = tiny::stores(plan).lambda;
  const double l_n = tiny::ngrams(plan).lambda[static_cast<std::size_t>(bucket)];
  std::map<std::string, double> mass = {{"", 1}};
  double gated = 0;
  for (const auto& row : plan.gates.gate.rows)
    gated += row.source == "cache" ? l_c : row.source == "datastore" ? l_s : 0;
  for (const auto& row : plan.gates.gate.rows) {
    std::vector<double> x = {value(at.gates.confidence.select(1, 0), i),
        value(at.gates.confidence.select(1, 1), i), value(at.gates.confidence.select(1, 2), i)};
    bool sees = true;
    if (row.source == "cache") x.push_back(value(at.gates.by_source.at("cache").select(1, 0), i));
    for (std::int64_t j = 0; row.source == "datastore" && j < 4; ++j)
      x.push_back(value(at.gates.by_source.at("datastore").select(1, j), i));
    for (std::int64_t j = 0; row.source == "ngrams" && j < 3; ++j)
      x.push_back(value(at.gates.by_source.at("ngrams").select(1, j), i));
    double score = row.bias;
    for (std::size_t j = 0; j < x.size(); ++j) score += x[j] * row.weights[j];
    for (const double number : x) sees = sees && !std::isnan(number);
    const double odds = row.source == "cache"       ? l_c / (1 - gated)
                        : row.source == "datastore" ? l_s / (1 - gated)
                                                    : l_n / (1 - l_n) / (1 - gated);
    mass[row.source] = odds * (sees ? std::exp(score) : 1);
  }
  double all = 0;
  for (const auto& [name, part] : mass) all += part;
  const auto has = [&](const char* name) { return mass.contains(name); };
  const double left = 1 - gated;
  double rest = ((1 - l_c - l_s) * joint + (has("cache") ? 0 : l_c * cache) +
                    (has("datastore") ? 0 : l_s * stores)) /
                left;
  double p = mass[""] / all * rest;
  // The weight of a source without entries goes to joint.
  if (has("cache")) p += mass["cache"] / all * cache;
  if (has("datastore")) p += mass["datastore"] / all * stores;
  if (has("ngrams")) return std::log(p + mass["ngrams"] / all * ngrams);
  return std::log((1 - l_n) * p + l_n * ngrams);
}

const std::vector<std::set<std::string>> kSources = {
    {"datastore"}, {"cache"}, {"ngrams"}, {"cache", "datastore"}, {"cache", "datastore", "ngrams"}};

}  // namespace

DOCTEST_TEST_CASE("a mixture by gates is what plain loops make of its sources, token by token") {
  for (const auto& sources : kSources) {
    Gated of(sources);
    of.fit(0.05);
    for (const auto& scored : scored_of(of))
      for (std::int64_t i = 0; i < scored.targets.size(0); ++i)
        DOCTEST_CHECK(value(scored.log_prob, i) ==
                      doctest::Approx(plain_mix(scored, i, of.plan)).epsilon(1e-9));
  }
}

DOCTEST_TEST_CASE("gates without weights are the constants") {
  for (const auto& sources : kSources) {
    Gated of(sources);
    auto constant = of.plan;
    constant.gates = {};
    const Tensor expected = tiny::log_probs(of.model, of.shard.data(), of.windows, constant);
    of.fit(0);
    const Tensor found = tiny::log_probs(of.model, of.shard.data(), of.windows, of.plan);
    DOCTEST_CHECK(tiny::largest_difference(found, expected) < 1e-9);
    of.plan.gates.gate.rows[0].bias = 1;
    const Tensor other = tiny::log_probs(of.model, of.shard.data(), of.windows, of.plan);
    DOCTEST_CHECK(tiny::largest_difference(other, expected) > 1e-3);
  }
}

DOCTEST_TEST_CASE("features are the entropy, the highest probability, and what is nearest") {
  Gated of({"datastore"});
  of.fit(0.1);
  const torch::NoGradGuard no_gradient;
  std::int64_t seen = 0;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    for (std::int64_t i = 0; i < scored.targets.size(0); ++i, ++seen) {
      const auto& found = *scored.parts.found();
      std::map<std::int64_t, double> labels;
      double last = 0;
      for (std::int64_t j = 0; j < infer::kGateNearest; ++j) {
        labels[found.labels[i][j].item<std::int64_t>()] += 1.0 / infer::kGateNearest;
        last = found.scores[i][j].item<double>();
      }
      const double nearest = found.scores[i][0].item<double>();
      const Tensor x = scored.parts.at(of.plan).gates.by_source.at("datastore")[i];
      DOCTEST_CHECK(value(x, 0) == nearest);
      DOCTEST_CHECK(value(x, 1) == doctest::Approx(nearest - last));
      DOCTEST_CHECK(
          value(x, 2) == doctest::Approx(labels.at(found.labels[i][0].item<std::int64_t>())));
      DOCTEST_CHECK(
          value(x, 3) == doctest::Approx(static_cast<double>(labels.size()) / infer::kGateNearest));
    }
  };
  infer::score(of.model, of.shard.data(), of.windows, of.plan, torch::kCPU, watch);
  DOCTEST_CHECK(seen == 149);
  const Tensor p = torch::tensor({{0.5, 0.25, 0.25}, {1.0, 0.0, 0.0}}, torch::kFloat64);
  const Tensor x = infer::confidence_of(p.log());
  DOCTEST_CHECK(x[0][0].item<double>() == doctest::Approx(1.5 * std::log(2)));
  DOCTEST_CHECK(x[0][1].item<double>() == doctest::Approx(0.5));
  DOCTEST_CHECK(x[0][2].item<double>() == doctest::Approx(std::log(0.5)));
  DOCTEST_CHECK(x[1][0].item<double>() == 0);
  // Two of five neighbours were found: the others do not count. Without neighbours the result is
  // NaN.
  infer::Neighbours few;
  few.scores = torch::tensor({{3.F, 1.F, -HUGE_VALF}, {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF}});
  few.labels = torch::tensor({{4, 4, -1}, {-1, -1, -1}}, torch::kInt64);
  const Tensor y = infer::gate_features_of(few);
  DOCTEST_CHECK(torch::equal(y[0], torch::tensor({3., 2., 1., 0.5}, torch::kFloat64)));
  DOCTEST_CHECK(y[1].isnan().all().item<bool>());
}

DOCTEST_TEST_CASE("words by gates add up to 1, and their targets are those that are scored") {
  const torch::NoGradGuard no_gradient;
  for (const auto& sources : kSources) {
    Gated of(sources);
    of.fit(0.05);
    of.windows = tiny::windows_of(48, 48);
    const Tensor expected = tiny::log_probs(of.model, of.shard.data(), of.windows, of.plan);
    auto window = of.windows;
    infer::StreamMemory memory(of.plan, 48, false, of.model);
    nn::Batch batch;
    const auto tokens = of.text.tokens();
    batch.inputs = torch::empty({1, 48}, torch::kInt64);
    batch.targets = torch::empty({1, 48}, torch::kInt64);
    for (std::int64_t i = 0; i < 48; ++i) {
      batch.inputs[0][i] = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]);
      batch.targets[0][i] = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i) + 1]);
    }
    const Tensor at = torch::arange(48).unsqueeze(0);
    batch.weight = torch::ones({1, 48});
    batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
    batch.fresh = torch::ones({1}, torch::kBool);
    const auto hidden = of.model.architecture->forward(batch, nullptr);
    infer::Window rows{hidden.output[0], hidden.key[0], batch.targets[0],
        nn::TokenPositions{torch::zeros({48}, torch::kInt64), torch::zeros({48}, torch::kInt64),
            torch::arange(48)}};
    rows.before = {static_cast<std::int64_t>(tokens[0])};
    const Tensor words = memory.log_probs(*of.model.head, rows, 0, 48);
    DOCTEST_CHECK(tiny::largest_difference(words.exp().sum(1), torch::ones({48})) < 1e-5);
    const Tensor own = words.gather(1, batch.targets[0].unsqueeze(1)).squeeze(1);
    DOCTEST_CHECK(tiny::largest_difference(own, expected.slice(0, 0, 48)) < 1e-5);
  }
}

DOCTEST_TEST_CASE("below the threshold stores are not searched, and their share goes to the rest") {
  Gated of({"datastore"});
  of.fit(0.3);
  const auto all = scored_of(of);
  std::vector<double> shares;
  for (const auto& scored : all) {
    const Tensor share = infer::search_shares(of.plan.gates.gate, scored.parts.confidence);
    for (std::int64_t i = 0; i < share.size(0); ++i) shares.push_back(value(share, i));
  }
  auto sorted = shares;
  std::sort(sorted.begin(), sorted.end());
  of.plan.gates.threshold = sorted[sorted.size() / 2];
  const auto totals = infer::score(of.model, of.shard.data(), of.windows, of.plan, torch::kCPU, {});
  DOCTEST_REQUIRE(totals.searches.has_value());
  DOCTEST_CHECK(totals.searches->skipped == std::ssize(sorted) / 2);
  DOCTEST_CHECK(
      totals.searches->made + totals.searches->skipped == static_cast<std::int64_t>(totals.tokens));
  std::size_t next = 0;
  const auto some = scored_of(of);
  for (std::size_t b = 0; b < some.size(); ++b) {
    for (std::int64_t i = 0; i < some[b].targets.size(0); ++i) {
      const bool searched = shares[next++] >= of.plan.gates.threshold;
      DOCTEST_CHECK(std::isnan(value(some[b].parts.at(of.plan).separate[1], i)) == !searched);
      const auto& expected = searched ? all[b] : some[b];
      DOCTEST_CHECK(value(some[b].log_prob, i) ==
                    doctest::Approx(plain_mix(expected, i, of.plan)).epsilon(1e-9));
    }
  }
}

DOCTEST_TEST_CASE("tuning fits gates that are no worse than the best constants") {
  for (const auto& sources : kSources) {
    Gated of(sources);
    const auto tuned = infer::tune(of.model, of.shard.data(), of.windows, of.plan, {}, torch::kCPU);
    DOCTEST_REQUIRE(tuned.gates.has_value());
    DOCTEST_CHECK(tuned.gates->second <= tuned.gates->first);
    DOCTEST_CHECK(tuned.gates->first == doctest::Approx(tuned.best.loss).epsilon(1e-4));
    const auto totals =
        infer::score(of.model, of.shard.data(), of.windows, tuned.memory, torch::kCPU, {});
    DOCTEST_CHECK(totals.loss() == doctest::Approx(tuned.gates->second).epsilon(1e-5));
    DOCTEST_REQUIRE(totals.gates.has_value());
    DOCTEST_CHECK(totals.gates->constant_nats / static_cast<double>(totals.tokens) ==
                  doctest::Approx(tuned.best.loss).epsilon(1e-4));
    DOCTEST_CHECK(totals.gates->worse < totals.tokens);
  }
}

DOCTEST_TEST_CASE("gates as texts read back the same; damaged ones are refused") {
  Gated of({"cache", "datastore", "ngrams"});
  of.fit(1.0 / 3);
  const auto texts = infer::to_texts(of.plan.gates.gate);
  DOCTEST_CHECK(texts.size() == 4);
  DOCTEST_CHECK(infer::to_texts(infer::parse_gate(texts)) == texts);
  DOCTEST_CHECK(infer::parse_gate({}).rows.empty());
  const auto code = [](const std::vector<std::string>& of) {
    return thrown([&] { infer::parse_gate(of); }).code;
  };
  for (const auto& text : texts) {
    DOCTEST_CHECK(code({text, text}) == 64);
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      if (text.find_first_of(" =", cut) != text.npos)
        DOCTEST_CHECK(code({text.substr(0, cut)}) == 64);
  }
  const std::string weights = " bias=0 entropy=1 top=0 log-top=0";
  DOCTEST_CHECK(code({"search shares=0.2" + weights}) == 0);
  for (const char* share : {"1", "-0.1", "nan", "inf", "0.2+0.3", "", "x"})
    DOCTEST_CHECK(code({std::string("search shares=") + share + weights}) == 64);
  DOCTEST_CHECK(code({"search shares=0.2 bias=0 entropy=1 top=1e99 log-top=0"}) == 64);
  DOCTEST_CHECK(code({"search shares=0.2 bias=0 top=1 entropy=1 log-top=0"}) == 64);
  DOCTEST_CHECK(code({"model shares=0.2" + weights}) == 64);
  DOCTEST_CHECK(
      code({"cache shares=0.6" + weights + " mass=0",
          "datastore shares=0.5" + weights + " nearest=0 spread=0 agree=0 distinct=0"}) == 64);
}

DOCTEST_TEST_CASE("a gate that is not fitted, or for others, is refused") {
  Gated of({"cache", "datastore"});
  const auto code = [&] {
    return thrown([&] {
      infer::score(of.model, of.shard.data(), of.windows, of.plan, torch::kCPU, {});
    }).code;
  };
  DOCTEST_CHECK(code() == 64);
  of.fit(0.1);
  DOCTEST_CHECK(code() == 0);
  of.plan.gates.gate.rows.pop_back();
  DOCTEST_CHECK(code() == 64);
}

DOCTEST_TEST_CASE("a model's confidence in float32 is that of float64") {
  torch::manual_seed(4);
  for (const std::int64_t words : {1, 17, 4096, 9001}) {
    Tensor scores = 4 * torch::randn({5, words});
    if (words > 1) scores.slice(1, words / 2, words / 2 + 1).fill_(-HUGE_VALF);
    const Tensor log_probs = scores.log_softmax(1);
    const Tensor got = infer::confidence_of(log_probs),
                 want = infer::confidence_of(log_probs.to(torch::kFloat64));
    DOCTEST_CAPTURE(words);
    DOCTEST_CHECK(torch::allclose(got, want, 1e-5, 1e-6));
  }
}
