// A training step on a device waits for nothing: no value is read, no size depends on a value, and
// no copy blocks the host. All architectures, memories and heads are tested on a device that
// reports waits (tests/device).

#include <doctest/doctest.h>

#include "core/error.h"
#include "device/pretend_device.h"
#include "nn/base/architecture.h"
#include "nn/base/cuda.h"
#include "train/learner.h"
#include "train/token_objective.h"
#include "unit/train/tiny.h"

namespace {

constexpr std::int64_t kUpdateRows = 3, kUpdateSteps = 8, kUpdateVocabulary = 40;

struct UpdateCase {
  std::string arch, memory;
  bool adaptive = false, columns = false;
  std::string positions = "learned";
  bool kernels = false, deterministic = false;
  nn::GlaOptions gla = {};
};

// Returns three rows of consecutive tokens. If rows are not carried, the last row ends in padding.
train::MicroBatch micro_batch(std::int64_t index, const UpdateCase& test) {
  train::MicroBatch micro;
  micro.index = index;
  auto& batch = micro.batch;
  const std::vector<std::int64_t> sizes = {kUpdateRows, kUpdateSteps};
  batch.inputs = torch::randint(kUpdateVocabulary, sizes);
  batch.targets = torch::randint(kUpdateVocabulary, sizes);
  batch.weight = torch::ones(sizes);
  const auto row = torch::arange(kUpdateRows).unsqueeze(1).expand(sizes);
  batch.place.run = row.clone();
  batch.place.segment = index * kUpdateRows + row;
  batch.place.position = (index + 100 * row) * kUpdateSteps + torch::arange(kUpdateSteps);
  batch.fresh = torch::full({kUpdateRows}, index == 0 || !test.columns);
  if (!test.columns) {
    for (auto* tensor : {&batch.weight, &batch.inputs, &batch.targets})
      tensor->index_put_({kUpdateRows - 1, torch::indexing::Slice(kUpdateSteps - 2)}, 0);
    batch.place.run.index_put_({kUpdateRows - 1, torch::indexing::Slice(kUpdateSteps - 2)}, -1);
  }
  if (nn::arch_facts(test.arch).reads_source) {
    batch.source = torch::randint(kUpdateVocabulary, {kUpdateRows, 5});
    batch.source.index_put_({1, torch::indexing::Slice(3)}, -1);
  }
  micro.tokens = batch.weight.sum().item<std::int64_t>();
  return micro;
}

std::shared_ptr<nn::Model> model_of(const UpdateCase& test, const train::Job& job) {
  auto options = job.model;
  options.arch = test.arch;
  options.transformer.positions = test.positions;
  options.gla = test.gla;
  options.layer_memory.layer_memory = "10";
  options.shape.attention_dropout = 0.1;
  options.mosaic2 = {.short_term = 4, .delay = 2, .most_delay = 5};
  if (test.adaptive) {
    options.vocabulary.cutoffs = {10, 20};
    options.vocabulary.adaptive_softmax_dropout = 0.1;
  }
  return std::make_shared<nn::Model>(options, kUpdateVocabulary);
}

// Returns what two steps waited for, and their losses.
std::vector<std::string> waits_of(const UpdateCase& test) {
  const TemporaryFolder folder;
  const auto job = tiny::job(folder);
  nn::start(1, 1);
  auto recipe = job.recipe;
  recipe.objective.memory = test.memory;
  recipe.objective.plain_warmup = 0;
  recipe.optimiser.clip = 1;
  recipe.deterministic = test.deterministic;
  if (test.columns) recipe.batches.batches = "streams";
  train::resolve_batches(recipe);
  train::resolve_steps(recipe, 10);
  const auto device = pretend::device();
  static const nn::CudaKernels emulated;
  const nn::AsDevice as(test.kernels ? &emulated : nullptr, device.type());
  train::Learner learner(model_of(test, job), recipe, test.columns, 1, device);
  pretend::take_waits();
  std::vector<torch::Tensor> losses;
  for (std::int64_t step = 0; step < 2; ++step)
    losses.push_back(learner.update(step, {micro_batch(step, test)}).loss);
  const auto waits = pretend::take_waits();
  for (const auto& loss : losses) {
    DOCTEST_CHECK(loss.device() == device);
    DOCTEST_CHECK(std::isfinite(loss.item<double>()));
  }
  return waits;
}

void check(const UpdateCase& test) {
  const auto name = fmt::format("{} {}{}{} {}", test.arch, test.memory,
      test.adaptive ? " adaptive" : "", test.columns ? " columns" : "", test.positions);
  DOCTEST_CAPTURE(name);
  std::string waits;
  for (const auto& wait : waits_of(test)) waits += wait + "; ";
  DOCTEST_CHECK(waits == "");
}

}  // namespace

DOCTEST_TEST_CASE("a device on which waiting is seen") {
  const auto device = pretend::device();
  const auto host = torch::rand({3}), x = host.to(device);
  const auto waits = [&](const auto& work) {
    pretend::take_waits();
    work();
    return pretend::take_waits().size();
  };
  DOCTEST_CHECK(waits([&] { x.sum().item<float>(); }) == 1);
  DOCTEST_CHECK(waits([&] { x.gt(0.5).nonzero(); }) == 1);
  DOCTEST_CHECK(waits([&] { x.index({x.gt(0.5)}); }) >= 1);
  DOCTEST_CHECK(waits([&] { x.cpu(); }) == 1);
  DOCTEST_CHECK(waits([&] { host.to(device); }) == 1);
  DOCTEST_CHECK(waits([&] { host.to(device, /*non_blocking=*/true); }) == 1);
  DOCTEST_CHECK(waits([&] { host.pin_memory().to(device, /*non_blocking=*/true); }) == 0);
  DOCTEST_CHECK(waits([&] { (x + x * 2).softmax(0).sub_(x); }) == 0);
  DOCTEST_CHECK_THROWS(x + host);
  DOCTEST_CHECK(torch::equal((x + x).cpu(), host + host));
}

DOCTEST_TEST_CASE("an update on a device waits for nothing: every architecture, memory and head") {
  for (const auto& arch : nn::architecture_names())
    for (const std::string memory : {"none", "local", "local,long", "ext", "local,ext"})
      for (const bool adaptive : {false, true})
        check({.arch = arch, .memory = memory, .adaptive = adaptive});
}

DOCTEST_TEST_CASE("nor does one whose rows carry on, nor one with positions of any kind") {
  for (const auto& arch : nn::architecture_names()) {
    if (nn::arch_facts(arch).reads_source) continue;
    for (const std::string memory : {"none", "local,long"})
      check({.arch = arch, .memory = memory, .columns = true});
  }
  for (const std::string positions : {"sinusoidal", "rope", "alibi", "none"})
    for (const bool columns : {false, true})
      check({.arch = "transformer", .memory = "none", .columns = columns, .positions = positions});
  check({.arch = "encoder-decoder", .memory = "none", .positions = "alibi"});
}

DOCTEST_TEST_CASE("nor does one of a gla, whatever it adds and keeps") {
  for (const auto& gla : std::vector<nn::GlaOptions>{
           {"delta", "gated", 4}, {"delta", "none", 1}, {"sum", "fixed", 4}, {"sum", "none", 4}})
    for (const bool columns : {false, true})
      check({.arch = "gla", .memory = "local,long", .columns = columns, .gla = gla});
}

DOCTEST_TEST_CASE("nor does one by kernels") {
  for (const std::string arch : {"transformer", "srupp", "mosaic", "mosaic2"})
    check({.arch = arch, .memory = "local,long", .adaptive = true, .kernels = true});
  check({.arch = "gla", .memory = "none", .kernels = true, .gla = {"delta", "gated", 4}});
}

DOCTEST_TEST_CASE("--deterministic is for a device alone, and every update can be so") {
  const auto on = [] { return at::globalContext().deterministicAlgorithms(); };
  for (const auto& arch : nn::architecture_names()) {
    DOCTEST_CAPTURE(arch);
    check({.arch = arch, .memory = "local,long", .adaptive = true, .deterministic = true});
    DOCTEST_CHECK(on());
  }
  check({.arch = "gla", .memory = "none"});
  DOCTEST_CHECK_FALSE(on());
  const TemporaryFolder folder;
  auto job = tiny::job(folder);
  job.recipe.deterministic = true;
  train::resolve_batches(job.recipe);
  train::resolve_steps(job.recipe, 10);
  const train::Learner learner(
      model_of({.arch = "gla", .memory = "none"}, job), job.recipe, false, 1, torch::kCPU);
  DOCTEST_CHECK_FALSE(on());
}

DOCTEST_TEST_CASE("a gradient that is not finite is found before its weights are kept") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.device = pretend::device();
  job.recipe.optimiser.lr = 1e30;
  job.recipe.optimiser.clip = 0;
  job.recipe.log_every = 14;
  std::string said;
  try {
    tiny::train(folder / "run", job, /*stop_at=*/8);
  } catch (const core::Error& error) { said = error.what(); }
  DOCTEST_CHECK(said.find("gradient is not finite") != std::string::npos);
  for (const auto& [name, bytes] : tiny::files(folder / "run"))
    DOCTEST_CHECK(name.find("safetensors") == std::string::npos);
}

DOCTEST_TEST_CASE("micro-batches are on a device before they are asked for, in a stream beside") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto run = train::prepare(tiny::job(folder)), same = train::prepare(tiny::job(folder));
  const auto device = pretend::device();
  pretend::take_copies();
  pretend::take_waits();
  train::Prefetch prefetch(*run.data, *run.order, 0, {}, {}, device);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto got = prefetch.next();
    const auto want = train::read_batch(*same.data, same.order->rows(i), i);
    DOCTEST_CHECK(pretend::take_waits().empty());
    DOCTEST_CHECK(got.batch.inputs.device() == device);
    DOCTEST_CHECK(got.batch.place.run.is_cpu());
    DOCTEST_CHECK(torch::equal(got.batch.inputs.cpu(), want.batch.inputs));
    DOCTEST_CHECK(torch::equal(got.batch.targets.cpu(), want.batch.targets));
    DOCTEST_CHECK(torch::equal(got.batch.host_targets, want.batch.targets));
    DOCTEST_CHECK(torch::equal(got.batch.weight.cpu(), want.batch.weight));
    pretend::take_waits();
  }
  const auto copies = pretend::take_copies();
  DOCTEST_CHECK(copies.all >= 9);
  DOCTEST_CHECK(copies.beside == copies.all);
}

DOCTEST_TEST_CASE("stopped on a device and continued: the same bytes") {
  const std::vector<UpdateCase> cases = {
      {.arch = "transformer-xl", .memory = "local,long", .columns = true},
      {.arch = "srupp", .memory = "local,long", .columns = true},
      {.arch = "mosaic", .memory = "local,ext"}, {.arch = "mosaic2", .memory = "local,ext"},
      {.arch = "transformer", .memory = "local,long"}};
  for (const auto& test : cases) {
    DOCTEST_CAPTURE(test.arch);
    const TemporaryFolder folder;
    tiny::write_text(folder / "text");
    auto job = tiny::job(folder);
    job.device = pretend::device();
    job.model.arch = test.arch;
    job.recipe.objective.memory = test.memory;
    job.recipe.batches.accumulate = 2;
    if (test.columns) job.recipe.batches.batches = "streams";
    DOCTEST_CHECK(tiny::train(folder / "whole", job) == train::Outcome::finished);
    for (const std::int64_t at : {1, 13})
      DOCTEST_CHECK(tiny::train(folder / "parts", job, at) == train::Outcome::stopped);
    DOCTEST_CHECK(tiny::train(folder / "parts", job) == train::Outcome::finished);
    DOCTEST_CHECK((tiny::files(folder / "whole") == tiny::files(folder / "parts")));
  }
}
