// Micro-batches of pairs: their contents, that every pair occurs once per epoch, refusals, and a
// run that is stopped and resumed.

#include <doctest/doctest.h>

#include "infer/score/scorer.h"
#include "train/batches.h"
#include "train/validation.h"
#include "unit/infer/memories.h"
#include "unit/train/data.h"
#include "unit/train/tiny.h"

namespace {

constexpr std::uint64_t kEnd = 0;

/// Pair i has i % 5 + 2 tokens before the end token. The target is the source with each token id
/// one higher.
void write_pairs(const std::string& path, std::uint64_t n, std::uint64_t target_extra = 0) {
  auto header = data::tokens_header(20);
  header.kind = shard::Kind::pairs;
  std::vector<std::uint64_t> elements, lengths;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto words = i % 5 + 2;
    for (const std::uint64_t shift : {0, 1}) {
      const auto length = words + shift * target_extra;
      for (std::uint64_t w = 0; w < length; ++w) elements.push_back(1 + (3 * i + w) % 17 + shift);
      elements.push_back(kEnd);
      lengths.push_back(length + 1);
    }
  }
  data::write_shard(path, header, elements, lengths);
}

void write_pair_order(const std::string& path, const std::vector<std::uint64_t>& list,
    const std::string& fingerprint, const std::string& unit = "pair") {
  shard::Header header;
  header.kind = shard::Kind::order;
  header.dtype = shard::Dtype::u32;
  header.vocabulary = list.size();
  header.unit = unit;
  header.unit_length = unit == "segment" ? 8 : 0;
  header.data_fingerprint = fingerprint;
  data::write_shard(path, header, list);
}

train::BatchOptions tokens(std::int64_t n) {
  train::BatchOptions options;
  options.batch_tokens = n;
  return options;
}

train::Job pair_job(const TemporaryFolder& folder) {
  auto job = tiny::job(folder);
  job.model.arch = "encoder-decoder";
  job.recipe.batches.batch_tokens = 40;
  return job;
}

}  // namespace

DOCTEST_TEST_CASE("a batch of pairs is the shifted target beside its source") {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", 4, 1);
  const shard::Dataset data({folder / "pairs"});
  const auto batch = batch::read_pairs(data, {2, 0});
  // Pair 2: source 7 8 9 10 e, target 8 9 10 11 12 e. Pair 0: source 1 2 e, target 2 3 4 e.
  DOCTEST_CHECK(batch.source.equal(torch::tensor({{7, 8, 9, 10, 0}, {1, 2, 0, -1, -1}})));
  DOCTEST_CHECK(batch.inputs.equal(torch::tensor({{0, 8, 9, 10, 11, 12}, {0, 2, 3, 4, 0, 0}})));
  DOCTEST_CHECK(batch.targets.equal(torch::tensor({{8, 9, 10, 11, 12, 0}, {2, 3, 4, 0, 0, 0}})));
  DOCTEST_CHECK(batch.weight.sum(1).equal(torch::tensor({6.0f, 4.0f})));
  DOCTEST_CHECK(batch.place.run.equal(torch::tensor({{2, 2, 2, 2, 2, 2}, {0, 0, 0, 0, -1, -1}})));
  DOCTEST_CHECK(batch.fresh.all().item<bool>());
}

DOCTEST_TEST_CASE("groups hold every pair once an epoch, within the budget, the same in each") {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", 53);
  const shard::Dataset data({folder / "pairs"});
  const auto order = train::make_order(tokens(20), data, nullptr, 7);
  using Group = std::set<std::int64_t>;
  std::vector<std::set<Group>> epochs(2);
  std::vector<std::vector<Group>> sequence(2);
  std::int64_t padding = 0;
  for (std::int64_t i = 0; i < 2 * order->batches_per_epoch(); ++i) {
    const auto micro = train::read_batch(data, order->rows(i), i);
    DOCTEST_CHECK(micro.batch.inputs.numel() <= 20);
    DOCTEST_CHECK(micro.batch.weight.sum().item<double>() == static_cast<double>(micro.tokens));
    padding += micro.batch.inputs.numel() - micro.tokens;
    Group group;
    for (const auto& row : order->rows(i)) group.insert(row.run);
    const auto epoch = static_cast<std::size_t>(i / order->batches_per_epoch());
    epochs[epoch].insert(group);
    sequence[epoch].push_back(group);
  }
  DOCTEST_CHECK(epochs[0] == epochs[1]);
  DOCTEST_CHECK(sequence[0] != sequence[1]);
  std::multiset<std::int64_t> all;
  for (const auto& group : epochs[0]) all.insert(group.begin(), group.end());
  DOCTEST_CHECK(all.size() == 53);
  DOCTEST_CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == 53);
  DOCTEST_CHECK(padding < 20);  // lengths differ only at the border of two buckets
  const auto other = train::make_order(tokens(20), data, nullptr, 8);
  std::set<Group> others;
  for (std::int64_t i = 0; i < other->batches_per_epoch(); ++i) {
    Group group;
    for (const auto& row : other->rows(i)) group.insert(row.run);
    others.insert(group);
  }
  DOCTEST_CHECK(others != epochs[0]);
  const auto tight = train::make_order(tokens(1), data, nullptr, 7);
  DOCTEST_CHECK(tight->batches_per_epoch() == 53);  // a pair above the budget is alone
}

DOCTEST_TEST_CASE("an order shard of pairs puts its neighbours together, and must fit the data") {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", 6);
  const shard::Dataset data({folder / "pairs"});
  const auto hex = data.fingerprint().hex();
  write_pair_order(folder / "order", {5, 0, 4, 1, 3, 2}, hex);
  const shard::Dataset list({folder / "order"});
  const auto order = train::make_order(tokens(14), data, &list, 1);
  std::set<std::vector<std::int64_t>> groups;
  for (std::int64_t i = 0; i < order->batches_per_epoch(); ++i) {
    std::vector<std::int64_t> group;
    for (const auto& row : order->rows(i)) group.push_back(row.run);
    groups.insert(group);
  }
  // Lengths: 3 3 7 4 6 5.
  DOCTEST_CHECK(groups == std::set<std::vector<std::int64_t>>{{5, 0}, {4, 1}, {3, 2}});
  write_pair_order(folder / "segments", {5, 0, 4, 1, 3, 2}, hex, "segment");
  write_pair_order(folder / "other", {5, 0, 4, 1, 3, 2}, std::string(32, '0'));
  write_pair_order(folder / "twice", {5, 0, 4, 1, 3, 3}, hex);
  for (const char* name : {"segments", "other", "twice"}) {
    const shard::Dataset wrong({folder / name});
    DOCTEST_CHECK_THROWS_AS(train::make_order(tokens(14), data, &wrong, 1), core::Error);
  }
}

DOCTEST_TEST_CASE("pairs are learned; a run that was killed ends in the same bytes") {
  const TemporaryFolder folder;
  write_pairs(folder / "text", 40);
  auto job = pair_job(folder);
  job.valid = folder / "text";
  job.recipe.steps = 120;
  job.recipe.valid_every = 20;
  tiny::train(folder / "whole", job);
  train::KeepOptions keep;
  keep.checkpoint_every = 16;
  tiny::train(folder / "parts", job, 37, /*kill=*/true, keep);
  tiny::train(folder / "parts", job, -1, false, keep);
  auto whole = tiny::files(folder / "whole"), parts = tiny::files(folder / "parts");
  DOCTEST_CHECK(whole["model.safetensors"] == parts["model.safetensors"]);
  DOCTEST_CHECK(whole["metrics.jsonl"] == parts["metrics.jsonl"]);
  const auto losses = tiny::losses(folder / "whole", "valid_loss");
  DOCTEST_CHECK(losses.back() < 0.7 * losses.front());
}

DOCTEST_TEST_CASE("the score of a shard is the sum over its pairs, one by one") {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", 9);
  const shard::Dataset data({folder / "pairs"});
  nn::start(1, 3);
  nn::Model model(pair_job(folder).model, 20);
  model.eval();
  double nats = 0;
  {
    const torch::NoGradGuard no_gradient;
    for (std::int64_t pair = 0; pair < 9; ++pair) {
      const auto batch = batch::read_pairs(data, {pair});
      const auto log_p =
          model.head->log_probs(model.architecture->forward(batch, nullptr).output[0], nullptr);
      nats -= log_p.gather(1, batch.targets[0].unsqueeze(1)).sum().item<double>();
    }
  }
  std::vector<std::uint64_t> order;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) { order.push_back(scored.first); };
  const auto totals =
      infer::score(model, data, infer::pair_windows(data, model, 20), {}, torch::kCPU, watch);
  DOCTEST_CHECK(totals.nats == doctest::Approx(nats).epsilon(1e-5));
  DOCTEST_CHECK(totals.tokens == 43);  // 3 4 5 6 7 3 4 5 6
  DOCTEST_CHECK(order.size() == 9);    // batches are sorted by length, scores are not
  DOCTEST_CHECK(std::is_sorted(order.begin(), order.end()));
}

DOCTEST_TEST_CASE("a translator that is trained with memory is validated with it") {
  const TemporaryFolder folder;
  write_pairs(folder / "text", 8);
  auto job = pair_job(folder);
  job.valid = folder / "text";
  const auto valid_loss = [&](const std::string& memory, double temperature) {
    nn::start(1, 3);
    job.recipe.objective.memory = memory;
    job.recipe.objective.memory_temperature = temperature;
    auto run = train::prepare(job);
    return train::validate(run).totals.loss();
  };
  const auto scored = [&](const std::string& name, double temperature) {
    nn::start(1, 3);
    job.recipe.objective.memory = name;
    const auto run = train::prepare(job);
    infer::MemoryOptions options;
    options.weights = "constant";
    tiny::context(options).memory = name;
    options.joint_temperature = temperature;
    const shard::Dataset data({folder / "text"});
    const auto windows = infer::pair_windows(data, *run.model, 4096);
    const auto memory = infer::plan_memory(options, windows, *run.model);
    return infer::score(*run.model, data, windows, memory, torch::kCPU).loss();
  };
  double best = scored("local", 2);  // memories are calibrated to the text
  for (const double temperature : train::calibration_points(2))
    best = std::min(best, scored("local", temperature));
  DOCTEST_CHECK(valid_loss("local", 2) == doctest::Approx(best).epsilon(1e-6));
  DOCTEST_CHECK(valid_loss("none", 2) == doctest::Approx(scored("none", 1)).epsilon(1e-6));
  DOCTEST_CHECK(std::abs(valid_loss("local", 2) - valid_loss("none", 2)) > 1e-3);
  // Nothing is remembered of another sentence.
  DOCTEST_CHECK(valid_loss("local,long", 2) == doctest::Approx(valid_loss("local", 2)));
}

DOCTEST_TEST_CASE("tokens and pairs go to the architectures that read them") {
  const TemporaryFolder folder;
  write_pairs(folder / "text", 8);
  auto job = pair_job(folder);
  job.model.arch = "transformer";
  DOCTEST_CHECK_THROWS_AS(train::prepare(job), core::Error);
  job = pair_job(folder);
  job.recipe.batches.batches = "shuffled";
  DOCTEST_CHECK_THROWS_AS(train::prepare(job), core::Error);
  job = pair_job(folder);
  job.model.transformer.context = 6;  // the longest side has 7 tokens
  DOCTEST_CHECK_THROWS_AS(train::prepare(job), core::Error);
  tiny::write_text(folder / "text");
  job = pair_job(folder);
  DOCTEST_CHECK_THROWS_AS(train::prepare(job), core::Error);
}
