// Weights that are learned from earlier tokens, compared with plain loops in float64. All sources
// are causal and give probabilities, with every architecture that reads one stream.

#include <doctest/doctest.h>

#include "infer/answers/passage_scorer.h"
#include "infer/score/scorer.h"
#include "infer/serve/open_job.h"
#include "ngrams/ngrams_builder.h"
#include "store_of_keys.h"
#include "tiny.h"
#include "tiny_pairs.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kOnlineTypes = 23;

// A model with every source of a stream and, after add_ensemble(), with every source.
struct AllSources {
  nn::Model model;
  TemporaryFolder folder;
  tiny::Text text = tiny::text_of({90, 60}, kOnlineTypes, 7);
  infer::WindowPlan windows = tiny::windows_of(24, 8);
  infer::MemoryPlan plan;
  explicit AllSources(const std::string& combine = "both", const std::string& arch = "transformer",
      bool online = true)
      : model(tiny::model_of(arch, positions_of(arch), kOnlineTypes, torch::kFloat64)) {
    if (model.architecture->carry() == nn::Carry::constant)
      windows = tiny::windows_of(24, 24, true);
    const auto entries = tiny::entries_of(150, model.architecture->d_key(), kOnlineTypes, 1);
    tiny::make_store(folder / "store", entries, kOnlineTypes, {"ip", "exact", "other"});
    ngrams::build(
        tiny::Shard(tiny::text_of({300}, kOnlineTypes, 5)).data(), folder / "ngrams", {300, 64}, 1);
    auto options = tiny::memory_of("local,long", 60);
    options.weights = online ? "online" : "constant";
    options = infer::request_memory(options,
        R"({"unigram": true, "unigram-half-life": 30, "online-ngrams": true, "online-ngrams-tokens": 40})");
    tiny::context(options).combine = combine, tiny::cache(options).positions = 40;
    tiny::stores(options).folders = {folder / "store"}, tiny::stores(options).k = 40;
    plan = infer::plan_memory(options, windows, model, {},
        tiny::opened(std::make_shared<const infer::Stores>(
            infer::open_each(tiny::stores(options).folders, torch::empty({0})), "m", "t", "model",
            model.architecture->d_key(), kOnlineTypes)));
    tiny::ngrams(plan).index =
        std::make_shared<const ngrams::Index>(std::vector<std::string>{folder / "ngrams"});
  }

  static std::string positions_of(const std::string& arch) {
    return arch == "transformer" ? "learned" : arch == "encoder-decoder" ? "sinusoidal" : "rope";
  }

  void add_ensemble(const std::string& arch = "lstm") {
    auto beside = std::make_shared<infer::EnsembleModel>();
    beside->loaded.folder = arch;
    beside->loaded.model = std::make_shared<nn::Model>(
        tiny::model_of(arch, positions_of(arch), kOnlineTypes, torch::kFloat64));
    if (arch == "lstm") beside->windows.window = beside->windows.stride = 24;
    tiny::ensemble(plan) = {{{arch, plan.online ? infer::kFirstShare : 0.1}}, {beside}};
    tiny::ensemble(plan).shares[0].temperature = 1.3;
    DOCTEST_REQUIRE(plan.kinds().size() == infer::source_kinds().size());
  }

  // Fits a gate of some weights to each source that may have one.
  void set_gates() {
    tiny::ensemble(plan).shares.at(0).gated = true;
    double weight = 0.1;
    for (const auto* const kind : infer::gate_kinds()) {
      plan.gates.sources.push_back(kind->name());
      infer::GateRow row;
      row.source = kind->name(), row.bias = weight;
      for (const auto& own : plan.weights())
        if (own.kind == kind->name()) row.constants.assign(own.values.begin(), own.values.end());
      for (std::size_t i = 0; i < infer::kConfidence.size() + kind->facts().gate.features.size();
           ++i)
        row.weights.push_back(weight *= -0.9);
      plan.gates.gate.rows.push_back(row);
    }
    plan.gates.gate.search =
        infer::GateRow{"search", {tiny::stores(plan).lambda}, 0.1, {0.1, -0.1, 0}};
  }
};

// Architectures that read one stream.
std::vector<std::string> stream_architectures() {
  auto names = nn::architecture_names();
  std::erase_if(names, [](const auto& name) { return nn::arch_facts(name).reads_source; });
  return names;
}

// Returns the loss of the model with only these memories in its softmax.
double loss_with(AllSources& of, const std::string& memory) {
  const tiny::Shard shard(of.text);
  const auto plan =
      infer::plan_memory(tiny::memory_of(memory, memory == "local" ? 0 : 60), of.windows, of.model);
  return infer::score(of.model, shard.data(), of.windows, plan, torch::kCPU).nats;
}

// Gives each part of the joint softmax its own parameters.
void set_apart(infer::MemoryPlan& plan) {
  tiny::context(plan).local = {"local", 0.7, 0.6}, tiny::context(plan).far = {"long", 1.8, -0.4};
  tiny::stores(plan).joint = {"datastore", 2.7, 0.3};
}

std::vector<infer::Scored> all_scored(AllSources& of, const shard::Dataset& data) {
  std::vector<infer::Scored> all;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) { all.push_back(scored); };
  infer::score(of.model, data, of.windows, of.plan, torch::kCPU, watch);
  return all;
}

std::vector<infer::Scored> all_scored(AllSources& of, const tiny::Text& text) {
  return all_scored(of, tiny::Shard(text).data());
}

// Scores the first document with details, as a text by itself.
infer::TokenScores scored_by_itself(AllSources& of) {
  infer::ModuleEngine engine(of.model, torch::kCPU);
  infer::TokenWants wants;
  wants.details = true, wants.likely = kOnlineTypes;
  infer::PassageScorer scorer(of.model, engine, of.windows, of.plan, kOnlineTypes, wants);
  infer::Passage passage;
  passage.text = true;
  const auto& tokens = of.text.documents[0];
  passage.context = {tokens[0]};
  passage.continuations.emplace_back(tokens.begin() + 1, tokens.end());
  return scorer.score({&passage, 1})[0][0];
}

double p_of(const Tensor& tensor, std::int64_t i) { return std::exp(tensor[i].item<double>()); }

// Weights of n sources by Soft-Bayes.
struct PlainBayes {
  std::vector<double> first, w;
  double t = 0;
  explicit PlainBayes(std::vector<double> from) : first(from), w(std::move(from)) {}
  double rate(double after) const {
    const auto n = static_cast<double>(w.size());
    return std::min(0.5, std::sqrt(std::log(n) / (2 * n * after)));
  }
  double mix(const std::vector<double>& p) const {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += w[i] * p[i];
    return sum;
  }
  void learn(const std::vector<double>& p) {
    const double all = mix(p), now = rate(t + 1), next = rate(t + 2);
    ++t;
    for (std::size_t i = 0; i < p.size(); ++i)
      w[i] = next / now * w[i] * (1 - now + now * p[i] / all) + (1 - next / now) * first[i];
  }
};

}  // namespace

DOCTEST_TEST_CASE("weights that are learned are those of a plain loop over the tokens") {
  for (const std::string combine : {"joint", "interpolate", "both"}) {
    AllSources of(combine);
    const std::size_t sources = combine == "joint" ? 2 : combine == "both" ? 3 : 4;
    const double rest = 1 - 0.05 * static_cast<double>(sources);
    std::vector<double> first = {0.05 * rest, 0.95 * rest};
    first.resize(2 + sources, 0.05);
    PlainBayes inner(first);
    std::vector<std::vector<PlainBayes>> outer;  // of each source with buckets
    const auto weights = of.plan.weights();
    for (const auto& weight : weights)
      if (weight.by_bucket()) {
        auto& own = outer.emplace_back();
        for (const double v : weight.values) own.push_back(PlainBayes({1 - v, v}));
      }
    DOCTEST_REQUIRE(outer.size() == 2);
    double alone = 0, learned = 0;  // log p so far
    for (const auto& scored : all_scored(of, of.text)) {
      const auto at = scored.parts.at(of.plan);
      for (std::int64_t i = 0; i < scored.targets.size(0); ++i) {
        const double head = p_of(scored.parts.head, i), joint = p_of(at.joint, i);
        std::vector<double> p = {head, joint};
        for (std::size_t s = 0; s < at.separate.size(); ++s) {
          const double own = p_of(at.separate[s], i);
          if (!weights[s].by_bucket()) p.push_back(std::isnan(own) ? joint : own);
        }
        double by_bucket = inner.mix(p);
        for (std::size_t s = 0, k = 0; s < at.separate.size(); ++s) {
          if (!weights[s].by_bucket()) continue;
          const auto b = at.gates.buckets.at(weights[s].kind)[i].item<std::int64_t>();
          auto& bayes = outer[k++][static_cast<std::size_t>(b)];
          const std::vector<double> both = {by_bucket, p_of(at.separate[s], i)};
          by_bucket = bayes.mix(both);
          bayes.learn(both);
        }
        const double u = std::exp(alone) / (std::exp(alone) + std::exp(learned));
        DOCTEST_CHECK(p_of(scored.log_prob, i) ==
                      doctest::Approx(u * head + (1 - u) * by_bucket).epsilon(1e-9));
        inner.learn(p);
        alone += std::log(head), learned += std::log(by_bucket);
      }
    }
  }
}

DOCTEST_TEST_CASE("a text is never less probable than by the head alone by more than log 2 nats") {
  for (const std::string combine : {"joint", "interpolate", "both"}) {
    AllSources of(combine);
    tiny::stores(of.plan).temperature = 0.01, tiny::cache(of.plan).theta = 50;  // the worst values
    double alone = 0, mixed = 0;
    for (const auto& scored : all_scored(of, of.text)) {
      alone += scored.parts.head.sum().item<double>();
      mixed += scored.log_prob.sum().item<double>();
      DOCTEST_CHECK(mixed > alone - std::log(2.0) - 1e-9);
    }
  }
}

DOCTEST_TEST_CASE("nor than by the model with the memory that it was trained with") {
  for (const std::string trained : {"local", "local,long"}) {
    AllSources of("both");
    tiny::context(of.plan).local.trained = true,
    tiny::context(of.plan).far.trained = trained != "local";
    tiny::stores(of.plan).joint.bias = 9, tiny::cache(of.plan).theta = 50;  // the worst values
    double mixed = 0;
    for (const auto& scored : all_scored(of, of.text))
      mixed -= scored.log_prob.sum().item<double>();
    DOCTEST_CHECK(mixed < loss_with(of, trained) + std::log(2.0) + 1e-6);
  }
}

DOCTEST_TEST_CASE("local and long apart are the positions that they are together, each once") {
  for (const char* arch : {"transformer", "lstm"}) {
    AllSources of("joint", arch, false);
    const auto together = all_scored(of, of.text);
    tiny::context(of.plan).local.temperature = tiny::context(of.plan).far.temperature =
        of.plan.joint_temperature;
    const auto apart = all_scored(of, of.text);
    for (const double bias : {0.0, 0.9, -HUGE_VAL}) {
      tiny::context(of.plan).local.bias = bias;
      const auto weighted = all_scored(of, of.text);
      for (std::size_t w = 0; w < together.size(); ++w) {
        const bool same = torch::allclose(weighted[w].log_prob, together[w].log_prob, 1e-9, 1e-9);
        DOCTEST_CHECK(same == (bias == 0));
        DOCTEST_CHECK(torch::allclose(apart[w].log_prob, together[w].log_prob, 1e-9, 1e-9));
      }
    }
  }
}

DOCTEST_TEST_CASE("with every source the past is exactly the same whatever comes later") {
  for (const auto& arch : stream_architectures())
    for (const std::string weights : {"constant", "online", "gates"}) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(weights);
      AllSources of("both", arch, weights == "online");
      of.add_ensemble();
      if (weights != "online") set_apart(of.plan);
      if (weights == "gates") of.set_gates();
      const auto expected = all_scored(of, of.text);
      auto other = of.text;
      for (std::size_t i = 30; i < 60; ++i)
        other.documents[1][i] = (other.documents[1][i] + 7) % 23;
      const auto found = all_scored(of, other);
      std::size_t same = 0;
      for (std::size_t w = 0; w < found.size(); ++w)
        for (std::int64_t i = 0; i < found[w].targets.size(0); ++i) {
          if (found[w].first + static_cast<std::uint64_t>(i) >= 120) continue;
          DOCTEST_CHECK(
              found[w].log_prob[i].item<double>() == expected[w].log_prob[i].item<double>());
          ++same;
        }
      DOCTEST_CHECK(same == 119);
    }
}

DOCTEST_TEST_CASE("with every source the past of pairs is the same whatever comes later") {
  const tiny::Pairs pairs;
  // In a target: the tokens before it, and the pairs before it, are its past.
  const auto& documents = pairs.data->documents();
  std::int64_t pair = 12;
  while (batch::target_of(documents, pair).length < 5) ++pair;
  const std::uint64_t changed = batch::target_of(documents, pair).begin + 2;
  const tiny::Pairs other(changed);
  for (const std::string weights : {"constant", "gates"}) {
    DOCTEST_CAPTURE(weights);
    AllSources of("both", "encoder-decoder", false);
    of.add_ensemble("encoder-decoder");
    set_apart(of.plan);
    if (weights == "gates") of.set_gates();
    of.windows = infer::pair_windows(*pairs.data, of.model, 60);
    const auto expected = all_scored(of, *pairs.data), found = all_scored(of, *other.data);
    DOCTEST_REQUIRE(found.size() == expected.size());
    std::size_t same = 0, differ = 0;
    for (std::size_t w = 0; w < found.size(); ++w) {
      DOCTEST_REQUIRE(found[w].first == expected[w].first);
      for (std::int64_t i = 0; i < found[w].targets.size(0); ++i) {
        const bool alike =
            found[w].log_prob[i].item<double>() == expected[w].log_prob[i].item<double>();
        if (found[w].first + static_cast<std::uint64_t>(i) < changed) {
          DOCTEST_CHECK(alike);
          ++same;
        } else {
          differ += !alike;
        }
      }
    }
    DOCTEST_CHECK(same > 60);
    DOCTEST_CHECK(differ > 60);
  }
  // Learned weights have no past in pairs.
  DOCTEST_CHECK(thrown([] {
    AllSources("both", "encoder-decoder", true);
  }).names("--memory-weights online: not supported for sentence pairs"));
}

DOCTEST_TEST_CASE(
    "words of every source sum to 1, and a text read by itself is scored as a data set") {
  for (const auto& arch : stream_architectures())
    for (const std::string weights : {"constant", "online", "gates"})
      for (const std::string combine : {"joint", "interpolate", "both", "apart"}) {
        // One of the ways to combine is enough for the others.
        if (combine != "both" && arch != "transformer" && arch != "lstm") continue;
        // The mass of joined stores is their weight, without a gate.
        if (weights == "gates" && combine != "interpolate" && combine != "both") continue;
        DOCTEST_CAPTURE(arch);
        DOCTEST_CAPTURE(weights);
        DOCTEST_CAPTURE(combine);
        AllSources of(combine == "apart" ? "joint" : combine, arch, weights == "online");
        of.add_ensemble();
        if (combine == "apart") set_apart(of.plan);
        if (weights == "gates") of.set_gates();
        of.text.documents.resize(1);
        std::vector<double> expected;
        for (const auto& scored : all_scored(of, of.text))
          for (std::int64_t i = 0; i < scored.targets.size(0); ++i)
            expected.push_back(scored.log_prob[i].item<double>());
        const auto scores = scored_by_itself(of);
        DOCTEST_REQUIRE(scores.log_prob.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          DOCTEST_CHECK(scores.log_prob[i] == doctest::Approx(expected[i]).epsilon(1e-5));
          double sum = 0;
          for (const auto& [word, p] : scores.details[i].likely) sum += p;
          DOCTEST_CHECK(std::abs(sum - 1) < 1e-6);
          double shares = 0;
          for (const double share : scores.details[i].shares) shares += share;
          DOCTEST_CHECK(std::abs(shares - 1) < 1e-6);
        }
      }
}

DOCTEST_TEST_CASE("the share of a distribution in a token is its weight times its probability") {
  AllSources of("joint", "transformer", false);
  of.add_ensemble();
  of.text.documents.resize(1);
  const auto scores = scored_by_itself(of);
  const auto names = of.plan.names();
  const auto share_of = [&](const std::string& name, std::size_t token) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return scores.details[token].shares.at(static_cast<std::size_t>(at));
  };
  std::size_t token = 0, seen = 0;
  for (const auto& scored : all_scored(of, of.text)) {
    const auto at = scored.parts.at(of.plan);
    for (std::int64_t i = 0; i < scored.targets.size(0); ++i, ++token) {
      const double p = p_of(scored.log_prob, i);
      const auto weights = of.plan.weights();
      std::vector<double> given(weights.size());
      double left = 1;  // what sources with buckets leave, the last one first
      for (std::size_t s = weights.size(); s-- > 0;)
        if (weights[s].by_bucket()) {
          const auto b = at.gates.buckets.at(weights[s].kind)[i].item<std::int64_t>();
          given[s] = left * weights[s].values[static_cast<std::size_t>(b)];
          left -= given[s];
        }
      for (std::size_t s = 0; s < weights.size(); ++s) {
        const std::string name = weights[s].kind == "ngrams"     ? "n-grams"
                                 : weights[s].kind == "ensemble" ? "lstm"
                                                                 : weights[s].kind;
        const double weight = weights[s].by_bucket() ? given[s] : left * weights[s].values[0];
        const double own = p_of(at.separate[s], i);
        const double expected = std::isnan(own) ? 0 : weight * own / p;
        DOCTEST_CAPTURE(name);
        DOCTEST_CHECK(share_of(name, token) == doctest::Approx(expected).epsilon(1e-4));
        seen += expected > 0;
      }
    }
  }
  DOCTEST_CHECK(token == scores.log_prob.size());
  DOCTEST_CHECK(seen > 2 * token);
}

DOCTEST_TEST_CASE(
    "a prompt's weights are those of the text, and the words that are drawn leave them") {
  const torch::NoGradGuard no_gradient;
  AllSources of("both", "lstm");
  of.windows = tiny::windows_of(100, 100, true);
  of.text.documents.resize(1);
  std::vector<double> expected;
  for (const auto& scored : all_scored(of, of.text))
    for (std::int64_t i = 0; i < scored.targets.size(0); ++i)
      expected.push_back(scored.log_prob[i].item<double>());
  const auto& tokens = of.text.documents[0];
  const std::vector<std::int64_t> wide(tokens.begin(), tokens.end());
  for (const bool follow : {false, true}) {
    of.plan.weights_follow = follow;
    infer::ModuleEngine engine(of.model, torch::kCPU);
    infer::Session session(engine, of.model, 100, of.plan, torch::kCPU);
    session.start({{wide.begin(), wide.begin() + 50}, {wide.begin(), wide.begin() + 20}});
    double farthest = 0;
    for (std::size_t i = 50; i + 1 < wide.size(); ++i) {
      const Tensor words = session.log_probs();
      const auto next = wide[i];
      const double found = words[0][next].item<double>();
      if (i == 50) DOCTEST_CHECK(found == doctest::Approx(expected[i - 1]).epsilon(1e-4));
      farthest = std::max(farthest, std::abs(found - expected[i - 1]));
      session.select({0, 1});
      session.advance({next, wide[i - 30]});
    }
    DOCTEST_CHECK((farthest < 1e-3) == follow);
  }
}

DOCTEST_TEST_CASE("each document begins with the first weights, however many are read together") {
  AllSources of;
  of.text = tiny::text_of({70, 40, 90}, kOnlineTypes, 7);
  of.windows.by_document = true;
  std::vector<double> expected;
  for (const auto& document : of.text.documents) {
    tiny::Text alone = of.text;
    alone.documents = {document};
    for (const auto& scored : all_scored(of, alone))
      for (std::int64_t i = 0; i < scored.targets.size(0); ++i)
        expected.push_back(scored.log_prob[i].item<double>());
  }
  for (const std::int64_t batch_tokens : {24, 100, 1000}) {
    of.windows.batch_tokens = batch_tokens;
    std::size_t i = 0;
    for (const auto& scored : all_scored(of, of.text))
      for (std::int64_t row = 0; row < scored.targets.size(0); ++row, ++i)
        DOCTEST_CHECK(
            scored.log_prob[row].item<double>() == doctest::Approx(expected.at(i)).epsilon(1e-9));
    DOCTEST_CHECK(i == expected.size());
  }
}

DOCTEST_TEST_CASE("weights are learned where no share is given or tuned") {
  AllSources of;
  const auto online = [&](const std::function<void(infer::MemoryOptions&)>& change) {
    infer::MemoryOptions options;
    tiny::context(options).memory = "local";
    tiny::cache(options).positions = 9;
    change(options);
    return infer::plan_memory(options, of.windows, of.model).online;
  };
  DOCTEST_CHECK(online([](auto&) {}));
  DOCTEST_CHECK(!online([](auto& o) { tiny::cache(o).lambda = 0.2; }));
  DOCTEST_CHECK(!online([](auto& o) { o.weights = "constant"; }));
  DOCTEST_CHECK(!online([](auto& o) { o.tuned_on = "abc"; }));
  DOCTEST_CHECK(online([](auto& o) { tiny::cache(o).lambda = 0.2, o.weights = "online"; }));
  DOCTEST_CHECK(
      !online([](auto& o) { tiny::context(o).memory = "none", tiny::cache(o).positions = 0; }));
  // More memory than the model was trained with.
  model::TrainingFacts facts;
  facts.memory = "local";
  for (const std::string memory : {"", "local", "local,long", "long"}) {
    infer::MemoryOptions options;
    tiny::context(options).memory = memory;
    DOCTEST_CHECK(infer::plan_memory(options, of.windows, of.model, facts).online ==
                  memory.ends_with("long"));
  }
}
