// Steps with recorded micro-batches give the same bytes as steps without recording.

#include <doctest/doctest.h>

#include "device/recording.h"
#include "train/learner.h"
#include "unit/train/tiny.h"

namespace {

constexpr std::int64_t kRows = 3, kSteps = 6, kVocabulary = 20;

struct MicroBatchCase {
  std::string memory = "none", positions = "learned", arch = "transformer";
  std::int64_t accumulate = 1;
  double dropout = 0, smoothing = 0;
  bool padded = false;
};

// Segments at random places, as in shuffled batches. Batch 5 has two consecutive segments.
train::MicroBatch micro_batch(std::int64_t index, std::int64_t rows, bool padded) {
  train::MicroBatch micro;
  micro.index = index;
  auto& batch = micro.batch;
  const std::vector<std::int64_t> sizes = {rows, kSteps};
  batch.inputs = torch::randint(kVocabulary, sizes);
  batch.targets = torch::randint(kVocabulary, sizes);
  batch.weight = torch::ones(sizes);
  const auto number = torch::randperm(100).narrow(0, 0, rows).unsqueeze(1);
  batch.place.run = number.expand(sizes).clone();
  batch.place.segment = batch.place.run.clone();
  batch.place.position = number * kSteps + torch::arange(kSteps);
  if (index == 5) batch.place.run[1].copy_(batch.place.run[0]);
  batch.fresh = torch::ones({rows}, torch::kBool);
  if (padded) batch.place.run.index_put_({0, torch::indexing::Slice(kSteps - 2)}, -1);
  micro.tokens = rows * kSteps;
  return micro;
}

struct Trained {
  std::vector<torch::Tensor> losses, weights;
  bool recorded;
};

// Trains six steps; the fifth step's batches are smaller.
Trained trained(const MicroBatchCase& test, bool record) {
  const TemporaryFolder folder;
  auto job = tiny::job(folder);
  nn::start(1, 1);
  torch::manual_seed(5);
  auto& recipe = job.recipe;
  recipe.objective.memory = test.memory;
  recipe.objective.plain_warmup = 0;
  recipe.objective.label_smoothing = test.smoothing;
  recipe.batches.accumulate = test.accumulate;
  train::resolve_batches(recipe);
  train::resolve_steps(recipe, 10);
  auto options = job.model;
  options.shape.d_model = 8;
  options.arch = test.arch;
  auto& shape = options.shape;
  shape.dropout = shape.attention_dropout = shape.activation_dropout = shape.head_dropout =
      test.dropout;
  options.transformer.positions = test.positions;
  const auto device = pretend::device();
  nn::CudaKernels kernels = pretend::recording_kernels();
  // Much faster than the emulated kernel.
  kernels.adam = [](const nn::AdamSpan* spans, std::int64_t count, void*) {
    for (std::int64_t i = 0; i < count; ++i) nn::adam_cpu(spans[i], 0, spans[i].n);
    return 0;
  };
  const nn::AsDevice as(&kernels, device.type());
  train::Learner learner(std::make_shared<nn::Model>(options, kVocabulary), recipe, false, 1,
      device, ranks::Group::alone(), record);
  Trained trained{};
  std::int64_t index = 0;
  for (std::int64_t step = 0; step < 6; ++step) {
    std::vector<train::MicroBatch> micros;
    for (std::int64_t i = 0; i < test.accumulate; ++i)
      micros.push_back(micro_batch(index++, step == 4 ? 2 : kRows, test.padded));
    pretend::take_waits();
    const auto update = learner.update(step, micros);
    DOCTEST_CHECK(pretend::take_waits().empty());
    trained.losses.push_back(update.loss.cpu());
    trained.losses.push_back(update.norm.cpu());
  }
  for (const auto& [name, weight] : learner.model().named_weights())
    trained.weights.push_back(weight.detach().cpu());
  trained.recorded = learner.recorded();
  return trained;
}

// Returns whether a recording was made and the bytes are equal.
bool same_bytes(const MicroBatchCase& test) {
  const auto recorded = trained(test, true), plain = trained(test, false);
  DOCTEST_CHECK_FALSE(plain.recorded);
  for (std::size_t i = 0; i < plain.losses.size(); ++i)
    DOCTEST_CHECK(torch::equal(recorded.losses[i], plain.losses[i]));
  for (std::size_t i = 0; i < plain.weights.size(); ++i)
    DOCTEST_CHECK(torch::equal(recorded.weights[i], plain.weights[i]));
  return recorded.recorded;
}

}  // namespace

DOCTEST_TEST_CASE("micro-batches that are alike are recorded, and give the same bytes") {
  for (const auto& test : std::vector<MicroBatchCase>{{.smoothing = 0.1},
           {.positions = "sinusoidal", .accumulate = 3}, {.memory = "local", .positions = "alibi"},
           {.memory = "local", .accumulate = 2, .dropout = 0.2},
           {.memory = "local,long", .positions = "rope", .accumulate = 2}}) {
    DOCTEST_CAPTURE(test.positions);
    DOCTEST_CHECK(same_bytes(test));
  }
}

DOCTEST_TEST_CASE("what is not the same each time is not recorded, and trains as it did") {
  DOCTEST_CHECK_FALSE(same_bytes({.memory = "ext"}));
  DOCTEST_CHECK_FALSE(same_bytes({.memory = "local", .padded = true}));
  DOCTEST_CHECK_FALSE(same_bytes({.arch = "lstm"}));
}
