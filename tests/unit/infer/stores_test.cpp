// Datastores at test time, compared with plain loops over every entry.
#include "infer/stores/stores.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>

#include "infer/score/report.h"
#include "infer/score/text_report.h"
#include "infer/score/tune.h"
#include "infer/windows/windows.h"
#include "nn/base/torch.h"
#include "plain_scores.h"
#include "store/datastore.h"
#include "store_of_keys.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

std::shared_ptr<const infer::Stores> open(const std::vector<std::string>& folders,
    const nn::Model& model, const std::string& name = "m", const std::string& tokenizer = "t") {
  return std::make_shared<const infer::Stores>(infer::open_each(folders, torch::empty({0})), name,
      tokenizer, "model", model.architecture->d_key(), tiny::kTypes);
}

struct StoreCase {
  const char *memory, *combine, *stores_combine;
  std::int64_t cache, k;
};

infer::MemoryPlan plan_of(
    const StoreCase& c, const nn::Model& model, std::shared_ptr<const infer::Stores> stores) {
  infer::MemoryOptions memory = tiny::memory_of(c.memory);
  if (std::string(c.memory).find("long") != std::string::npos)
    tiny::context(memory).long_reach = "33";
  tiny::context(memory).combine = c.combine, tiny::cache(memory).positions = c.cache,
  memory.joint_temperature = 1.3;
  tiny::cache(memory).theta = 0.07, tiny::cache(memory).lambda = 0.21,
  tiny::context(memory).lambda = 0.13;
  tiny::stores(memory).combine = c.stores_combine, tiny::stores(memory).k = c.k;
  tiny::stores(memory).lambda = 0.3, tiny::stores(memory).temperature = 2.5;
  return infer::plan_memory(
      memory, tiny::windows_of(16, 5), model, {}, tiny::opened(std::move(stores)));
}

const std::vector<StoreCase> kStoreCases = {
    {"none", "joint", "auto", 0, 9},
    {"none", "interpolate", "auto", 0, 9},
    {"none", "both", "auto", 0, 9},
    {"local", "joint", "auto", 0, 1},
    {"local,long", "joint", "auto", 0, 500},
    {"local,long", "joint", "interpolate", 0, 9},
    {"local", "interpolate", "joint", 20, 9},
    {"local,long", "both", "auto", 20, 9},
    {"local", "interpolate", "auto", 20, 200},
};

}  // namespace

DOCTEST_TEST_CASE("stores equal the plain loop: joint, interpolated, both, one store or two") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const std::int64_t width = model.architecture->d_key();
  const tiny::Text text = tiny::text_of({50, 21});
  const tiny::Shard shard(text);
  for (const char* metric : {"ip", "l2"}) {
    const TemporaryFolder folder;
    const auto one = tiny::entries_of(120, width, tiny::kTypes, 1);
    const auto two = tiny::entries_of(80, width, tiny::kTypes, 2);
    tiny::make_store(folder / "one", one, tiny::kTypes, {metric, "exact", "text 1"});
    tiny::make_store(folder / "two", two, tiny::kTypes, {metric, "exact", "text 2"});
    const auto alone = open({folder / "one"}, model);
    const auto together = open({folder / "one", folder / "two"}, model);
    auto all = one;
    all.insert(all.end(), two.begin(), two.end());
    for (const StoreCase& c : kStoreCases) {
      for (const bool several : {false, true}) {
        DOCTEST_CAPTURE(metric);
        DOCTEST_CAPTURE(c.memory);
        DOCTEST_CAPTURE(c.combine);
        DOCTEST_CAPTURE(c.stores_combine);
        DOCTEST_CAPTURE(c.k);
        DOCTEST_CAPTURE(several);
        const auto memory = plan_of(c, model, several ? together : alone);
        auto windows = tiny::windows_of(16, 5);
        windows.batch_tokens = 40;  // several searches, which overlap with the model
        const Tensor found = tiny::log_probs(model, shard.data(), windows, memory);
        const Tensor expected = torch::tensor(plain_scores(model, text.tokens(), windows, memory,
                                                  several ? all : one, std::string(metric) == "l2"),
            torch::kFloat64);
        DOCTEST_REQUIRE(found.numel() == expected.numel());
        DOCTEST_CHECK(tiny::largest_difference(found, expected) < 1e-4);
      }
    }
  }
}

DOCTEST_TEST_CASE("each part of the joint softmax has its own temperature and weight") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const tiny::Text text = tiny::text_of({50, 21});
  const tiny::Shard shard(text);
  const TemporaryFolder folder;
  const auto entries = tiny::entries_of(120, model.architecture->d_key(), tiny::kTypes, 1);
  tiny::make_store(folder / "s", entries, tiny::kTypes, {"ip", "exact", "other"});
  const auto windows = tiny::windows_of(16, 5);
  const double without = -HUGE_VAL;
  for (const char* combine : {"joint", "both"})
    for (const auto& [local, far, stored] : std::vector<std::array<infer::JointPart, 3>>{
             {{{"local", 0.6, 0.7}, {"long", 2.1, -1.2}, {"datastore", 3.4, 0.4}}},
             {{{"local", 0, 1.5}, {"long", 0, 0}, {"datastore", 2, 0}}},
             {{{"local", 0.6, without}, {"long", 2.1, 0}, {"datastore", 0, -0.5}}},
             {{{"local", 0.6, 0.2}, {"long", 0, without}, {"datastore", 3.4, 0}}},
             {{{"local", 0.9, 0}, {"long", 0.9, 0}, {"datastore", 0, without}}},
             {{{"local", 0, without}, {"long", 0, without}, {"datastore", 0, without}}}}) {
      auto memory =
          plan_of({"local,long", combine, "auto", 20, 60}, model, open({folder / "s"}, model));
      tiny::context(memory).local = local, tiny::context(memory).far = far,
      tiny::stores(memory).joint = stored;
      const Tensor found = tiny::log_probs(model, shard.data(), windows, memory);
      const Tensor expected = torch::tensor(
          plain_scores(model, text.tokens(), windows, memory, entries), torch::kFloat64);
      DOCTEST_CHECK(tiny::largest_difference(found, expected) < 1e-5);
    }
}

DOCTEST_TEST_CASE("the parts of the joint softmax are tuned, and any of them may be left out") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const tiny::Shard shard(tiny::text_of({150}));
  const TemporaryFolder folder;
  tiny::make_store(folder / "s",
      tiny::entries_of(300, model.architecture->d_key(), tiny::kTypes, 1), tiny::kTypes);
  const auto windows = tiny::windows_of(16, 8);
  auto asked = tiny::memory_of("local,long", 60);
  tiny::stores(asked).folders = {folder / "s"}, tiny::stores(asked).k = 40;
  asked.weights = "constant";
  const auto stores = open({folder / "s"}, model);
  const auto memory = infer::plan_memory(asked, windows, model, {}, tiny::opened(stores));
  const auto tuned = infer::tune(model, shard.data(), windows, memory, {}, torch::kCPU);
  const auto loss_of = [&](const infer::MemoryPlan& plan) {
    return infer::score(model, shard.data(), windows, plan, torch::kCPU).loss();
  };
  DOCTEST_CHECK(std::abs(loss_of(tuned.memory) - tuned.best.loss) < 1e-6);
  // For a store of noise, leaving a part out, or another temperature or weight, is no better.
  DOCTEST_CHECK(
      tuned.best.loss <= loss_of(infer::plan_memory(tiny::memory_of("none"), windows, model)));
  for (const bool local : {false, true})
    for (const auto& change : std::vector<std::function<void(infer::JointPart&)>>{
             [](auto& part) { part.bias = -HUGE_VAL; }, [](auto& part) { part.bias += 1; },
             [](auto& part) { part.bias -= 1; }, [](auto& part) { part.temperature *= 1.5; },
             [](auto& part) { part.temperature /= 1.5; }}) {
      auto other = tuned.memory;
      change(local ? tiny::context(other).local : tiny::context(other).far);
      DOCTEST_CHECK(tuned.best.loss < loss_of(other) + 2e-3);
    }
  // As options, which give an equal plan; and by its points.
  const auto settled = infer::settled(asked, tuned.memory);
  const auto again = infer::plan_memory(settled, windows, model, {}, tiny::opened(stores));
  DOCTEST_CHECK(infer::signature({}, {}, windows, again, "float32") ==
                infer::signature({}, {}, windows, tuned.memory, "float32"));
  DOCTEST_CHECK(std::abs(loss_of(again) - tuned.best.loss) < 1e-6);
  infer::TuneOptions listed;
  listed.points["datastore-joint-bias"] = {-2, 0};
  listed.points["local-joint-temperature"] = {0.7, 1}, listed.points["local-joint-bias"] = {0};
  listed.points["long-joint-temperature"] = {1}, listed.points["long-joint-bias"] = {0};
  listed.points["datastore-joint-temperature"] = {1, 3};
  const auto of_list = infer::tune(model, shard.data(), windows, memory, listed, torch::kCPU);
  DOCTEST_CHECK(std::abs(loss_of(of_list.memory) - of_list.best.loss) < 1e-6);
  DOCTEST_CHECK(of_list.best.loss >= tuned.best.loss - 1e-3);
}

DOCTEST_TEST_CASE(
    "what is asked of a part of the joint softmax is refused where it makes no sense") {
  const nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes);
  const auto windows = tiny::windows_of(16, 8);
  const auto code = [&](const std::function<void(infer::MemoryOptions&)>& change) {
    auto asked = tiny::memory_of("local,long", 60);
    change(asked);
    return thrown([&] { infer::plan_memory(asked, windows, model); }).code;
  };
  for (const char* bias : {"", "x", "1x", "nan", "inf", "2e6", "Without"})
    DOCTEST_CHECK(code([&](auto& o) { tiny::context(o).local.bias = bias; }) == 64);
  DOCTEST_CHECK(code([](auto& o) { tiny::context(o).far.temperature = 1e-7; }) == 64);
  DOCTEST_CHECK(code([](auto& o) {
    tiny::context(o).combine = "interpolate", tiny::context(o).far.bias = "1";
  }) == 64);
  DOCTEST_CHECK(code([](auto& o) {
    tiny::context(o).local.bias = "-1.5", tiny::context(o).far.bias = "without";
  }) == 0);
}

DOCTEST_TEST_CASE("with rescore an index that looks everywhere equals the plain loop") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const tiny::Text text = tiny::text_of({40});
  const tiny::Shard shard(text);
  const auto entries = tiny::entries_of(700, model.architecture->d_key(), tiny::kTypes, 1);
  const TemporaryFolder folder;
  tiny::make_store(folder / "s", entries, tiny::kTypes, {"ip", "IVF4,SQ4", "text"});
  auto memory = plan_of({"local", "both", "auto", 0, 700}, model, open({folder / "s"}, model));
  tiny::stores(memory).nprobe = 4;
  const auto windows = tiny::windows_of(16, 5);
  const Tensor expected =
      torch::tensor(plain_scores(model, text.tokens(), windows, memory, entries), torch::kFloat64);
  const Tensor rough = tiny::log_probs(model, shard.data(), windows, memory);
  DOCTEST_CHECK(tiny::largest_difference(rough, expected) > 1e-3);
  tiny::stores(memory).rescore = true;
  const Tensor exact = tiny::log_probs(model, shard.data(), windows, memory);
  DOCTEST_CHECK(tiny::largest_difference(exact, expected) < 1e-4);
}

DOCTEST_TEST_CASE("a text does not see its own entries in a store") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const tiny::Text text = tiny::text_of({50});
  const tiny::Shard shard(text);
  const std::int64_t width = model.architecture->d_key();
  const TemporaryFolder folder;
  const auto other = tiny::entries_of(60, width, tiny::kTypes, 2);
  const std::string own = shard.data().fingerprint().hex();
  tiny::make_store(folder / "own", tiny::entries_of(49, width, tiny::kTypes, 1), tiny::kTypes,
      {"ip", "exact", own});
  tiny::make_store(folder / "other", other, tiny::kTypes);
  const auto windows = tiny::windows_of(16, 5);
  const StoreCase c = {"local", "both", "auto", 0, 100};
  const auto with_own = plan_of(c, model, open({folder / "own", folder / "other"}, model));
  DOCTEST_CHECK(tiny::stores(with_own).opened->hold({own}));
  const Tensor expected =
      torch::tensor(plain_scores(model, text.tokens(), windows, with_own, other), torch::kFloat64);
  const Tensor found = tiny::log_probs(model, shard.data(), windows, with_own);
  DOCTEST_CHECK(tiny::largest_difference(found, expected) < 1e-4);
  // There is no other entry: the weight goes to the joint distribution.
  const Tensor nothing = tiny::log_probs(
      model, shard.data(), windows, plan_of(c, model, open({folder / "own"}, model)));
  const auto local = plan_of({"local", "joint", "joint", 0, 1}, model, nullptr);
  const Tensor without =
      torch::tensor(plain_scores(model, text.tokens(), windows, local), torch::kFloat64);
  DOCTEST_CHECK(tiny::largest_difference(nothing, without) < 1e-9);
}

DOCTEST_TEST_CASE("hidden entries take no places: the neighbours of a store without them") {
  const nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes);
  const std::int64_t width = model.architecture->d_key();
  const auto own = tiny::entries_of(90, width, tiny::kTypes, 1);
  auto others = tiny::entries_of(30, width, tiny::kTypes, 2);
  const auto more = tiny::entries_of(30, width, tiny::kTypes, 3);
  const TemporaryFolder folder;
  for (const char* metric : {"ip", "l2"}) {
    for (const char* index : {"exact", "IVF2,Flat"}) {
      const std::string name = std::string(metric) + index;
      tiny::make_store(folder / name, others, tiny::kTypes, {metric, index, "others"});
      tiny::add_to_store(folder / name, own, tiny::kTypes, {metric, index, "own"});
      tiny::add_to_store(folder / name, more, tiny::kTypes, {metric, index, "more"});
      auto shown = others;
      shown.insert(shown.end(), more.begin(), more.end());
      tiny::make_store(folder / (name + " shown"), shown, tiny::kTypes, {metric, "exact", "shown"});
      const auto all = open({folder / name}, model);
      const auto without = open({folder / (name + " shown")}, model);
      torch::manual_seed(1);
      const Tensor queries = torch::randn({40, width});
      for (const std::int64_t k : {1, 5, 31, 60, 100, 200}) {
        DOCTEST_CAPTURE(name);
        DOCTEST_CAPTURE(k);
        const auto found = all->search(queries, k, 2, true, {"own"});
        const auto expected = without->search(queries, k, 2, true);
        const Tensor rows = torch::where(expected.rows >= 30, expected.rows + 90, expected.rows);
        DOCTEST_CHECK(torch::equal(found.rows, rows));
        DOCTEST_CHECK(torch::equal(found.labels, expected.labels));
        DOCTEST_CHECK(torch::allclose(found.scores, expected.scores, 1e-5, 1e-5));
        const auto none = all->search(queries, k, 2, true, {"no text of it"});
        DOCTEST_CHECK(torch::equal(none.rows, all->search(queries, k, 2, true).rows));
      }
    }
  }
}

DOCTEST_TEST_CASE("of a store of two shards the one that is the text is hidden, and only that") {
  const nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes);
  const std::int64_t width = model.architecture->d_key();
  const auto entries = tiny::entries_of(80, width, tiny::kTypes, 1);
  const std::vector halves = {std::vector(entries.begin(), entries.begin() + 40),
      std::vector(entries.begin() + 40, entries.end())};
  const TemporaryFolder folder;
  tiny::make_store(
      folder / "both", entries, tiny::kTypes, {"ip", "exact", "ab", "m", "t", {"a", "b"}});
  tiny::make_store(folder / "one", entries, tiny::kTypes, {"ip", "exact", "ab"});
  const auto both = open({folder / "both"}, model), one = open({folder / "one"}, model);
  torch::manual_seed(1);
  const Tensor queries = torch::randn({20, width});
  for (const std::size_t hidden : {0U, 1U}) {
    const std::string name = hidden == 0 ? "a" : "b", other = hidden == 0 ? "b" : "a";
    tiny::make_store(folder / name, halves[1 - hidden], tiny::kTypes, {"ip", "exact", other});
    for (const std::int64_t k : {3, 40, 100}) {
      const auto found = both->search(queries, k, 1, false, {name, "a text with more in it"});
      const auto expected = open({folder / name}, model)->search(queries, k, 1, false);
      DOCTEST_CHECK(torch::equal(found.scores, expected.scores));
      DOCTEST_CHECK(torch::equal(found.labels, expected.labels));
    }
    DOCTEST_CHECK(both->hold({name}));
    DOCTEST_CHECK(both->that_merged({name}).empty());
    DOCTEST_CHECK(!one->hold({name}));
  }
  const auto nothing = both->search(queries, 9, 1, false, {"a", "b"});
  DOCTEST_CHECK(nothing.rows.eq(-1).all().item<bool>());
  DOCTEST_CHECK(one->hold({"ab"}));
  DOCTEST_CHECK(thrown([&] { open({folder / "both", folder / "a"}, model); }).code == 64);
}

DOCTEST_TEST_CASE("each point of a grid with stores is what a run of its own gives") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const tiny::Shard shard(tiny::text_of({90}));
  const TemporaryFolder folder;
  tiny::make_store(folder / "s",
      tiny::entries_of(700, model.architecture->d_key(), tiny::kTypes, 1), tiny::kTypes,
      {"ip", "IVF8,SQ8", "text"});
  auto memory = plan_of({"local", "both", "auto", 0, 20}, model, open({folder / "s"}, model));
  tiny::stores(memory).nprobe = 8;
  infer::TuneOptions options;
  options.points["temperature"] = {0.7, 1.4}, options.lambdas = {0, 0.6};
  options.points["datastore-temperature"] = {1, 5}, options.whole["nprobe"] = {1, 8};
  const auto windows = tiny::windows_of(16, 8);
  const auto tuned = infer::tune(model, shard.data(), windows, memory, options, torch::kCPU);
  DOCTEST_REQUIRE(tuned.points.size() == 16);
  for (const auto& point : tuned.points) {
    const auto at = tuned.at(point, memory);
    const auto totals = infer::score(model, shard.data(), windows, at, torch::kCPU);
    DOCTEST_CHECK(std::abs(totals.loss() - point.loss) < 1e-6);
  }
  const auto again = infer::score(model, shard.data(), windows, tuned.memory, torch::kCPU);
  DOCTEST_CHECK(std::abs(again.loss() - tuned.best.loss) < 1e-6);
}

DOCTEST_TEST_CASE("retrieval counts labels among the k nearest") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes);
  const tiny::Shard shard(tiny::text_of({60}));
  const TemporaryFolder folder;
  tiny::make_store(folder / "s",
      tiny::entries_of(300, model.architecture->d_key(), tiny::kTypes, 1), tiny::kTypes);
  const auto memory = plan_of({"none", "joint", "auto", 0, 50}, model, open({folder / "s"}, model));
  const std::vector<std::int64_t> at = {1, 5, 50};
  const auto retrieval = infer::retrieval_accuracy(at, memory.search().k);
  std::vector<std::int64_t> expected(at.size(), 0);
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    retrieval->add(scored);
    for (std::int64_t i = 0; i < scored.targets.numel(); ++i)
      for (std::size_t a = 0; a < at.size(); ++a)
        for (std::int64_t j = 0; j < at[a]; ++j)
          if (scored.parts.found()->labels[i][j].item<std::int64_t>() ==
              scored.targets[i].item<std::int64_t>()) {
            ++expected[a];
            break;
          }
  };
  infer::score(model, shard.data(), tiny::windows_of(16, 8), memory, torch::kCPU, watch);
  core::OrderedJson all;
  retrieval->add_to(all);
  const auto& figures = all["retrieval"];
  DOCTEST_REQUIRE(figures.size() == at.size());
  for (std::size_t a = 0; a < at.size(); ++a) {
    DOCTEST_CHECK(figures[a]["k"] == at[a]);
    DOCTEST_CHECK(figures[a]["share"].get<double>() ==
                  doctest::Approx(static_cast<double>(expected[a]) / 59));
  }
  DOCTEST_CHECK(expected[0] < expected[1]);
  DOCTEST_CHECK(thrown([&] { infer::retrieval_accuracy({51}, memory.search().k); }).code == 64);
  DOCTEST_CHECK(thrown([&] { infer::retrieval_accuracy({1}, 0); }).code == 64);
}

DOCTEST_TEST_CASE("words under stores sum to one and have eval's scores among them") {
  const torch::NoGradGuard no_gradient;
  nn::Model model = tiny::model_of("transformer", "rope", tiny::kTypes, torch::kFloat64);
  const TemporaryFolder folder;
  tiny::make_store(folder / "s",
      tiny::entries_of(100, model.architecture->d_key(), tiny::kTypes, 1), tiny::kTypes);
  const auto stores = open({folder / "s"}, model);
  const store::Datastore opened(folder / "s");
  const tiny::Shard shard(tiny::text_of({12}));
  for (const char* combine : {"joint", "interpolate", "both"}) {
    const auto memory = plan_of({"none", combine, "auto", 0, 9}, model, stores);
    const auto windows = tiny::windows_of(12, 12);
    const auto span =
        *infer::Windows(windows, shard.data().documents(), shard.data().size()).next();
    const nn::Batch batch = infer::batch_of({span}, shard.data(), {}, tiny::kTypes);
    const nn::Hidden hidden = model.architecture->forward(batch, nullptr);
    infer::StreamMemory memories(memory, 12, true, model);
    const Tensor words = memories.log_probs(*model.head, hidden.output[0], hidden.key[0],
        nn::TokenPositions{batch.place.run[0], batch.place.segment[0], batch.place.position[0]});
    DOCTEST_CHECK(
        torch::allclose(words.logsumexp(1), torch::zeros({11}, torch::kFloat64), 0, 1e-5));
    const Tensor scored = tiny::log_probs(model, shard.data(), windows, memory);
    const Tensor own = words.gather(1, batch.targets[0].unsqueeze(1)).squeeze(1);
    DOCTEST_CHECK(tiny::largest_difference(own, scored) < 1e-5);
    // The entries' contributions to every token add up to the stores' total.
    Tensor z;
    model.head->log_probs(hidden.output[0], &z);
    for (std::int64_t row = 0; row < 11; ++row) {
      double given = 0, mass = 0;
      for (std::int64_t word = 0; word < tiny::kTypes; ++word) {
        const double log_prob = words[row][word].item<double>();
        for (const auto& one : memories.store_shares({row, word, log_prob})) {
          DOCTEST_CHECK(opened.labels()[static_cast<std::size_t>(one.row)] == word);
          DOCTEST_CHECK(one.share <= 1 + 1e-6);
          given += one.share * std::exp(log_prob);
        }
      }
      const auto found = stores->search(hidden.key[0].slice(0, row, row + 1), 9, 1, false);
      for (std::int64_t i = 0; i < 9; ++i)
        mass += std::exp(found.scores[0][i].item<double>() / (4 * 1.3));  // the root of the width
      const double joined = mass / (std::exp(z[row].item<double>()) + mass);
      const double own_share = tiny::stores(memory).interpolated() ? 0.3 : 0;
      const double expected =
          own_share + (tiny::stores(memory).joined() ? (1 - own_share) * joined : 0);
      DOCTEST_CHECK(given == doctest::Approx(expected).epsilon(1e-4));
    }
  }
}

namespace {

// Two folders that answer as one store, with the rows of the second after those of the first, like
// parts on several machines.
class TwoParts : public store::Store {
 public:
  TwoParts(const std::string& a, const std::string& b) : a_(a), b_(b), manifest_(a_.manifest()) {
    manifest_.rows += b_.manifest().rows;
    manifest_.documents += b_.manifest().documents;
    for (const auto& source : b_.manifest().sources) manifest_.sources.push_back(source);
  }
  const std::string& name() const override { return name_; }
  const store::Manifest& manifest() const override { return manifest_; }
  store::Hits search(
      std::span<const float> queries, const store::SearchOptions& options) const override {
    const auto a = a_.search(queries, options), b = b_.search(queries, options);
    store::Hits best = a;
    const auto k = static_cast<std::size_t>(options.k);
    for (std::size_t first = 0; first < a.ids.size(); first += k)
      for (std::size_t i = first, from_a = first, from_b = first; i < first + k; ++i) {
        const bool take_a = a.scores[from_a] >= b.scores[from_b];
        const auto& from = take_a ? a : b;
        const std::size_t at = take_a ? from_a++ : from_b++;
        best.scores[i] = from.scores[at], best.labels[i] = from.labels[at];
        best.ids[i] = from.ids[at] < 0 || take_a ? from.ids[at] : from.ids[at] + a_.size();
      }
    return best;
  }
  store::RowContext context(std::int64_t row, std::int64_t most) const override {
    if (row < a_.size()) return a_.context(row, most);
    auto found = b_.context(row - a_.size(), most);
    found.document += static_cast<std::int64_t>(a_.manifest().documents);
    return found;
  }

 private:
  store::Datastore a_, b_;
  store::Manifest manifest_;
  std::string name_ = "two parts";
};

}  // namespace

DOCTEST_TEST_CASE("parts that answer as one store are as good as the folder of all rows") {
  nn::Model model = tiny::model_of("transformer", "learned", tiny::kTypes, torch::kFloat64);
  const std::int64_t width = model.architecture->d_key();
  const TemporaryFolder folder;
  auto all = tiny::entries_of(60, width, tiny::kTypes, 1);
  const auto more = tiny::entries_of(40, width, tiny::kTypes, 2);
  tiny::make_store(folder / "a", all, tiny::kTypes, {"ip", "exact", "a"});
  tiny::make_store(folder / "b", more, tiny::kTypes, {"ip", "exact", "b"});
  all.insert(all.end(), more.begin(), more.end());
  tiny::make_store(folder / "all", all, tiny::kTypes, {"ip", "exact", "all"});
  std::vector<std::unique_ptr<const store::Store>> parts;
  parts.push_back(std::make_unique<TwoParts>(folder / "a", folder / "b"));
  const infer::Stores apart(std::move(parts), "m", "t", "model", width, tiny::kTypes);
  const auto whole = open({folder / "all"}, model);
  const Tensor queries = torch::randn({20, width});
  const auto one = whole->search(queries, 9, 1, false), two = apart.search(queries, 9, 1, false);
  DOCTEST_CHECK(torch::equal(one.rows, two.rows));
  DOCTEST_CHECK(torch::equal(one.labels, two.labels));
  DOCTEST_CHECK(torch::equal(one.scores, two.scores));
  const store::Datastore rows(folder / "all");
  for (const std::int64_t row : {0, 29, 30, 59, 75}) {
    const auto context = apart[0].context(row, 4);
    const std::int64_t first = row < 30 ? 0 : row < 60 ? 30 : row < 80 ? 60 : 80;
    DOCTEST_CHECK(context.document == (row < 30 ? 0 : row < 60 ? 1 : 2));
    const auto begin = rows.labels().begin() + std::max(first, row - 4);
    DOCTEST_CHECK(context.before == std::vector<std::int32_t>(begin, rows.labels().begin() + row));
  }
}

DOCTEST_TEST_CASE("stores that do not belong together or to the model are refused") {
  const nn::Model model = tiny::model_of("transformer");
  const std::int64_t width = model.architecture->d_key();
  const TemporaryFolder folder;
  const auto entries = tiny::entries_of(5, width, tiny::kTypes, 1);
  tiny::make_store(folder / "ip", entries, tiny::kTypes, {"ip", "exact", "a"});
  tiny::make_store(folder / "l2", entries, tiny::kTypes, {"l2", "exact", "b"});
  tiny::make_store(
      folder / "narrow", tiny::entries_of(5, width / 2, tiny::kTypes, 1), tiny::kTypes);
  tiny::make_store(folder / "words", tiny::entries_of(50, width, 100, 1), 100);
  const auto refused = [&](const std::vector<std::string>& folders, const std::string& name = "m",
                           const std::string& tokenizer = "t") {
    return thrown([&] { open(folders, model, name, tokenizer); }).code;
  };
  DOCTEST_CHECK(refused({folder / "ip"}) == 0);
  DOCTEST_CHECK(refused({folder / "ip", folder / "l2"}) == 64);
  DOCTEST_CHECK(refused({folder / "ip", folder / "ip"}) == 64);
  DOCTEST_CHECK(refused({folder / "ip"}, "another model") == 65);
  DOCTEST_CHECK(refused({folder / "ip"}, "m", "another tokenizer") == 65);
  DOCTEST_CHECK(refused({folder / "narrow"}) == 65);
  DOCTEST_CHECK(refused({folder / "none"}) == 66);
  // Labels outside the model's vocabulary.
  const auto large = open({folder / "words"}, model);
  DOCTEST_CHECK(thrown([&] { large->search(torch::zeros({1, width}), 50, 1, false); }).code == 65);
}
