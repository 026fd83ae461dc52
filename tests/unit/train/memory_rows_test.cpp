// Fine-tuning of memory rows: the rows that a micro-batch changes compared with plain loops, and
// runs that train them.

#include "train/memory_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "model/folder.h"
#include "nn/layers/ngram_memory.h"
#include "nn/memory/joint_loss.h"
#include "train/validation.h"
#include "unit/model/small_models.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"
#include "unit/train/tiny.h"

namespace {

constexpr std::int64_t kTableRows = 30, kTableHeads = 2, kTableLayer = 1;
const std::string kTables = ".ngram.tables";

nn::ModelOptions with_tables(nn::ModelOptions options) {
  options.memory_layer.kind = "ngram";
  options.memory_layer.layers = {kTableLayer + 1};
  options.memory_layer.rows = kTableRows, options.memory_layer.heads = kTableHeads;
  return options;
}

torch::Tensor table_of(const nn::Model& model) {
  for (const auto& [name, weight] : model.named_weights())
    if (name.ends_with(kTables)) return weight;
  return {};
}

/// How often the inputs (B, T) read each row of the table, by a loop over tokens.
std::map<std::int64_t, std::int64_t> reads_of(const torch::Tensor& inputs) {
  std::map<std::int64_t, std::int64_t> reads;
  const auto tokens = torch::cat({torch::zeros({inputs.size(0), 2}, torch::kInt64), inputs + 1}, 1);
  const auto rows = nn::ngram_rows(tokens, {16, kTableHeads, kTableRows, 16, kTableLayer});
  for (std::int64_t b = 0; b < rows.size(0); ++b)
    for (std::int64_t t = 0; t < rows.size(1); ++t)
      for (std::int64_t h = 0; h < rows.size(2); ++h)
        ++reads[rows[b][t][h].item<std::int64_t>() + h * kTableRows];
  return reads;
}

void backward(nn::Model& model, train::TrainedPart* part, const nn::Batch& batch) {
  nn::Hidden hidden;
  const auto pass = [&] { hidden = model.architecture->forward(batch, nullptr); };
  if (part != nullptr) part->forward(pass);
  else pass();
  nn::joint_loss(hidden.output, hidden.key, batch, *model.head, {}, {}).backward();
}

train::Job sparse_job(const TemporaryFolder& folder) {
  tiny::write_text(folder / "text");
  core::Rng rng(9);
  std::vector<std::uint64_t> known(60);
  for (auto& token : known) token = rng.below(40);
  data::write_shard(folder / "known", data::tokens_header(40), known);
  auto job = tiny::job(folder);
  tiny::train(folder / "base", job);
  job.from = folder / "base";
  job.background = folder / "known";
  job.recipe.only_memory_rows = 200;
  job.recipe.optimiser.lr = 0.1;
  job.recipe.steps = 40;
  job.asked = {{"memory_layer", "ngram"}, {"memory_layer_rows", 500}};
  return job;
}

}  // namespace

DOCTEST_TEST_CASE("memory rows: those with the best TF-IDF keep their gradients, beside loops") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "known", 300, 9);
  auto options = with_tables(tiny::job(folder).model);
  options.shape.dropout = 0;
  const auto model = random_model(options, 40);
  const shard::Dataset known({folder / "known"});
  train::BatchOptions batches;
  batches.batches = "sequential", batches.segment = 12, batches.batch = 3;
  const auto order = train::make_order(batches, known, nullptr, 1);
  // b: micro-batches of the background that read a row
  const auto count = order->batches_per_epoch();
  std::map<std::int64_t, std::int64_t> background;
  for (std::int64_t i = 0; i < count; ++i)
    for (const auto& [row, n] : reads_of(train::read_batch(known, order->rows(i), i).batch.inputs))
      ++background[row];
  const auto batch = batch_of(some_ids(40, 16));
  backward(*model, nullptr, batch);
  const auto whole = table_of(*model).grad().to_dense().clone();
  for (const std::int64_t most : {1, 5, 1000}) {
    table_of(*model).mutable_grad() = torch::Tensor();
    train::MemoryRows part(model, most);
    DOCTEST_CHECK(part.rows() == 2 * kTableHeads * kTableRows);
    DOCTEST_CHECK(part.read_background(known, *order, {}) == std::ssize(background));
    backward(*model, &part, batch);
    part.take_gradients();
    std::vector<std::pair<double, std::int64_t>> scores;
    for (const auto& [row, n] : reads_of(batch.inputs)) {
      const double score =
          static_cast<double>(n) *
          std::log(static_cast<double>(count + 1) / static_cast<double>(background[row] + 1));
      if (score > 0) scores.emplace_back(-score, row);
    }
    std::sort(scores.begin(), scores.end());
    scores.resize(std::min(scores.size(), static_cast<std::size_t>(most)));
    auto want = torch::zeros_like(whole);
    for (const auto& [score, row] : scores) want[row] = whole[row];
    // Frozen weights have other kernels, so the last bits differ.
    const auto got = table_of(*model).grad().to_dense();
    DOCTEST_CHECK(torch::equal(got == 0, want == 0));
    DOCTEST_CHECK(torch::allclose(got, want, 1e-5, 1e-6));
    for (const auto& [name, weight] : model->named_weights())
      DOCTEST_CHECK(weight.requires_grad() == name.ends_with(kTables));
  }
}

DOCTEST_TEST_CASE("a run of --only-memory-rows changes tables alone, learns, and resumes") {
  const TemporaryFolder folder;
  auto job = sparse_job(folder);
  job.valid = folder / "text";
  {
    // The tables that were added begin at 0: the model computes what it did.
    auto run = train::prepare(job);
    DOCTEST_CHECK(table_of(*run.model).abs().max().item<double>() == 0);
    auto base = tiny::job(folder);
    base.from = job.from, base.valid = job.valid;
    auto plain = train::prepare(base);
    DOCTEST_CHECK(train::validate(run).totals.loss() ==
                  doctest::Approx(train::validate(plain).totals.loss()).epsilon(1e-12));
    DOCTEST_CHECK(run.note.find("--background: ") != std::string::npos);
  }
  DOCTEST_CHECK(tiny::train(folder / "a", job) == train::Outcome::finished);
  DOCTEST_CHECK(tiny::train(folder / "b", job, 20) == train::Outcome::stopped);
  DOCTEST_CHECK(tiny::train(folder / "b", job) == train::Outcome::finished);
  DOCTEST_CHECK(tiny::files(folder / "a") == tiny::files(folder / "b"));
  const auto before = model::load(folder / "base").model, after = model::load(folder / "a").model;
  std::map<std::string, torch::Tensor> old;
  for (const auto& [name, weight] : before->named_weights()) old[name] = weight;
  for (const auto& [name, weight] : after->named_weights()) {
    if (old.contains(name)) DOCTEST_CHECK(torch::equal(weight, old[name]));
  }
  DOCTEST_CHECK(table_of(*after).abs().max().item<double>() > 0);
  const auto valid = tiny::losses(folder / "a", "valid_loss");
  DOCTEST_CHECK(valid.back() < valid.front() - 0.01);
  // What was trained is trained on, without new layers.
  job.from = folder / "a", job.asked = core::OrderedJson::object(), job.recipe.steps = 2;
  DOCTEST_CHECK(tiny::train(folder / "c", job) == train::Outcome::finished);
}

DOCTEST_TEST_CASE("an update of --only-memory-rows changes so many rows") {
  const TemporaryFolder folder;
  auto job = sparse_job(folder);
  job.recipe.only_memory_rows = 3, job.recipe.steps = 1, job.recipe.schedule.warmup = 0;
  tiny::train(folder / "a", job);
  const auto changed = (table_of(*model::load(folder / "a").model) != 0).any(1).sum();
  DOCTEST_CHECK(changed.item<std::int64_t>() == 3);
}

DOCTEST_TEST_CASE("--only-memory-rows: what cannot be is refused") {
  const TemporaryFolder folder;
  const auto job = sparse_job(folder);
  const auto refused = [](const train::Job& of) {
    return thrown([&] { train::prepare(of); }).text;
  };
  auto other = job;
  other.asked = core::OrderedJson::object();
  DOCTEST_CHECK(refused(other) ==
                "--only-memory-rows: the model has no memory layer; a transformer gets one with "
                "--memory-layer ngram");
  other = job, other.background = "";
  DOCTEST_CHECK(refused(other) == "--only-memory-rows and --background: each requires the other");
  other = job, other.recipe.only_memory_rows = 0;
  DOCTEST_CHECK(refused(other) == "--only-memory-rows and --background: each requires the other");
  other = job, other.recipe.lora.lora = 2;
  DOCTEST_CHECK(refused(other) == "--only-memory-rows: cannot be combined with --lora");
  other = job, other.from = "", other.model = with_tables(job.model);
  DOCTEST_CHECK(refused(other).find("--only-memory-rows: --from MODEL is missing") == 0);
  other = job, other.asked = {{"memory_layer", "product-key"}};
  DOCTEST_CHECK(
      refused(other).find("--memory-layer: " + job.from + " has none, not product-key") == 0);
}
