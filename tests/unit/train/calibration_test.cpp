// Calibrated temperatures, compared with a plain search that computes the loss for each
// temperature.
#include "train/validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "infer/score/scorer.h"
#include "model/folder.h"
#include "nn/memory/joint_loss.h"
#include "train/learner.h"
#include "unit/infer/memories.h"
#include "unit/train/tiny.h"

namespace {

// Makes keys as long as after a training that sharpened them `times`.
void sharpen_keys(nn::Model& model, double times) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : model.named_weights())
    if (name.find("h.1.ln_2") != name.npos) torch::Tensor(weight).mul_(times);
}

double slow_calibration(train::Run& run, const train::Learner& learner) {
  const torch::NoGradGuard no_grad;
  run.model->eval();
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (const double step : train::kCalibrationSteps) {
    const double temperature = step * run.recipe.objective.memory_temperature;
    double nats = 0;
    for (std::int64_t i = 0; step >= 1 && i < 8; ++i) {
      const auto micro = train::read_batch(*run.data, run.order->rows(i), i);
      nn::MemoryRule rule = learner.rule(run.recipe.steps, i);
      rule.temperature = temperature;
      const auto hidden = run.model->architecture->forward(micro.batch, nullptr);
      const auto entries = nn::Entries::of(hidden.key, micro.batch);
      nats +=
          nn::joint_loss(hidden.output, hidden.key, micro.batch, *run.model->head, rule, entries)
              .item<double>();
    }
    if (step >= 1 && nats < least) least = nats, best = temperature;
  }
  run.model->train();
  return best;
}

train::Job job_with(const TemporaryFolder& folder, const std::string& memory) {
  tiny::write_text(folder / "text");
  train::Job job = tiny::job(folder);
  job.recipe.objective.memory = memory;
  return job;
}

}  // namespace

DOCTEST_TEST_CASE(
    "on training batches: the temperature that a loss for each of them would choose") {
  for (const std::string memory : {"local", "long", "local,ext"}) {
    for (const double trained : {1.0, 2.5}) {
      const TemporaryFolder folder;
      auto job = job_with(folder, memory);
      job.recipe.objective.memory_temperature = trained;
      nn::start(1, job.seed);
      auto run = train::prepare(job);
      sharpen_keys(*run.model, 3);
      train::Learner learner(run.model, run.recipe, run.order->carries(), run.seed, torch::kCPU);
      const auto rule = [&](std::int64_t i) { return learner.rule(run.recipe.steps, i); };
      const double chosen =
          train::calibrate(*run.model, train::calibration_batches(run), rule, trained, torch::kCPU);
      DOCTEST_CAPTURE(memory);
      DOCTEST_CHECK(chosen == doctest::Approx(slow_calibration(run, learner)));
      DOCTEST_CHECK(chosen > trained);
      DOCTEST_CHECK(run.model->is_training());
    }
  }
}

DOCTEST_TEST_CASE("on a text to validate on: the best of the evaluations at each temperature") {
  const TemporaryFolder folder;
  auto job = job_with(folder, "long");
  tiny::write_text(folder / "valid", 300, 2);
  job.valid = folder / "valid";
  nn::start(1, job.seed);
  auto run = train::prepare(job);
  sharpen_keys(*run.model, 3);
  const auto validated = train::validate(run);
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (const double temperature : train::kCalibrationSteps) {
    infer::WindowPlan windows;
    windows.window = windows.stride = 12;
    infer::MemoryOptions options;
    options.weights = "constant";
    tiny::context(options).memory = "long", tiny::context(options).long_reach = "72",
    options.joint_temperature = temperature;
    const auto memory = infer::plan_memory(options, windows, *run.model);
    const auto totals = infer::score(*run.model, *run.valid, windows, memory, torch::kCPU);
    if (totals.loss() < least) least = totals.loss(), best = temperature;
  }
  DOCTEST_CHECK(best > 1);
  DOCTEST_CHECK(validated.joint_temperature.value() == best);
  DOCTEST_CHECK(validated.totals.loss() == doctest::Approx(least).epsilon(1e-6));
}

DOCTEST_TEST_CASE("the model says the temperature of its weights: the best, the mean's, the last") {
  const TemporaryFolder folder;
  auto job = job_with(folder, "local,long");
  tiny::write_text(folder / "valid", 300, 2);
  const auto of = [&](const std::string& name) {
    tiny::train(folder / name, job);
    return tiny::config(folder / name)["tessera"];
  };
  // Returns the validation result of the folder's weights.
  const auto expected = [&](const std::string& name) {
    auto from = job;
    from.from = folder / name, from.valid = folder / "valid";
    auto run = train::prepare(from);
    return train::validate(run).joint_temperature.value();
  };
  job.valid = folder / "valid";
  job.recipe.valid_every = 5;
  const double best = of("best")["joint_temperature"].get<double>();
  DOCTEST_CHECK(best == expected("best"));
  const auto losses = tiny::losses(folder / "best", "valid_loss"),
             temperatures = tiny::losses(folder / "best", "joint_temperature");
  const auto at = std::min_element(losses.begin(), losses.end()) - losses.begin();
  DOCTEST_REQUIRE(temperatures.size() == losses.size());
  DOCTEST_CHECK(temperatures[static_cast<std::size_t>(at)] == expected("best"));
  job.recipe.average_checkpoints = 2;
  const double mean = of("mean")["joint_temperature"].get<double>();
  DOCTEST_CHECK(mean == expected("mean"));
  job.recipe.average_checkpoints = 0;
  job.valid.clear();
  DOCTEST_CHECK(of("last")["joint_temperature"].get<double>() >= 1);
  // Without validation data the run's own batches determine it.
  const auto last = model::load(folder / "last");
  sharpen_keys(*last.model, 3);
  model::save(
      folder / "sharp", *last.model, {{"memory", "local,long"}, {"segment", 12}}, last.tokenizer);
  job.from = folder / "sharp";
  job.recipe.optimiser.lr = 1e-9;
  DOCTEST_CHECK(of("sharper")["joint_temperature"].get<double>() > 1);
  job.from.clear();
  // Without memory there is no temperature.
  job.recipe.objective.memory = "none";
  DOCTEST_CHECK(!of("plain").contains("joint_temperature"));
}
