// A run on vectors works like a run on tokens. If stopped and resumed, it ends in the same bytes.
// It keeps the best weights by validation and can start from another run's maps.

#include "forecast/forecast_objective.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"
#include "forecast/forecast_model.h"
#include "train/plan.h"
#include "unit/train/tiny.h"

namespace {

using train::KeepOptions;
using train::Outcome;

/// Writes three points on circles, a series for each phase.
void write_moons(const std::string& path, const std::vector<double>& phases, std::int64_t rows) {
  shard::Header header;
  header.kind = shard::Kind::vectors;
  header.dtype = shard::Dtype::f32;
  header.width = 6;
  core::Output out(path);
  shard::Writer writer(out, header);
  for (const double phase : phases) {
    std::vector<float> numbers;
    for (std::int64_t t = 0; t < rows; ++t)
      for (const double speed : {.3, .7, 1.1})
        for (const double turn : {0.0, std::acos(0.0)})
          numbers.push_back(
              static_cast<float>(std::sin(phase + speed * static_cast<double>(t) + turn)));
    writer.write(std::span<const float>(numbers));
    writer.end_document(0, 0);
  }
  writer.finish();
  out.commit();
}

forecast::Job job_in(const TemporaryFolder& folder) {
  write_moons(folder / "moons", {0, 1, 2}, 60);
  write_moons(folder / "valid", {.5}, 50);
  forecast::Job job;
  job.model.shape.heads = 3;
  job.beta = 20;
  job.shards = {folder / "moons"};
  job.recipe.batches.segment = 24;
  job.recipe.batches.batch = 3;
  job.recipe.batches.accumulate = 2;
  job.recipe.steps = 14;
  job.recipe.log_every = 3;
  job.recipe.valid_every = 4;
  job.recipe.optimiser.lr = 0.05;
  return job;
}

Outcome learn(const std::string& path, const forecast::Job& job, std::int64_t stop_at = -1,
    const KeepOptions& keep = {}) {
  const train::RunFolder folder(path);
  const auto objective = forecast::prepare(job);
  std::int64_t step = -1;
  train::Callbacks watch;
  watch.progress = [&](const train::Callbacks::Progress& now) { step = now.step; };
  watch.stop = [&] { return step == stop_at && stop_at >= 0; };
  return train::train_in(folder, *objective, keep, watch);
}

std::string refusal(const std::string& path, const forecast::Job& job) {
  try {
    learn(path, job);
  } catch (const core::Error& error) { return error.what(); }
  return "not refused";
}

}  // namespace

DOCTEST_TEST_CASE("vectors: stopped at any update and continued, the same bytes") {
  const TemporaryFolder folder;
  for (const char* optimiser : {"adamw", "nag"}) {
    auto job = job_in(folder);
    job.valid = folder / "valid";
    job.recipe.optimiser.optimiser = optimiser;
    const std::string whole = folder / (std::string("whole-") + optimiser),
                      parts = folder / (std::string("parts-") + optimiser);
    DOCTEST_CHECK(learn(whole, job) == Outcome::finished);
    for (const std::int64_t at : {1, 4, 6, 13})
      DOCTEST_CHECK(learn(parts, job, at) == Outcome::stopped);
    DOCTEST_CHECK(learn(parts, job) == Outcome::finished);
    DOCTEST_CHECK((tiny::files(whole) == tiny::files(parts)));
    DOCTEST_CHECK(learn(parts, job) == Outcome::was_finished);
  }
}

DOCTEST_TEST_CASE("vectors: checkpoints stay as asked, another configuration is refused by name") {
  const TemporaryFolder folder;
  const auto job = job_in(folder);
  learn(folder / "run", job, -1, {.checkpoint_every = 4, .keep = 2});
  const auto files = tiny::files(folder / "run");
  DOCTEST_CHECK(files.count("step-4/state.json") == 0);
  DOCTEST_CHECK(files.count("step-8/state.json") == 1);
  DOCTEST_CHECK(files.count("step-12/state.json") == 1);
  auto other = job;
  other.beta = 30;
  DOCTEST_CHECK(refusal(folder / "run", other).find("beta 20.0, now 30.0") != std::string::npos);
  other = job;
  other.model.shape.heads = 1;
  DOCTEST_CHECK(refusal(folder / "run", other).find("heads 3, now 1") != std::string::npos);
  other = job;
  other.recipe.batches.segment = 20;
  DOCTEST_CHECK(refusal(folder / "run", other).find("segment 24, now 20") != std::string::npos);
}

DOCTEST_TEST_CASE("vectors: the model is the best by validation, whose loss is that of its maps") {
  const TemporaryFolder folder;
  auto job = job_in(folder);
  job.valid = folder / "valid";
  job.recipe.optimiser.lr = 0.7;  // overshoots the optimum
  job.recipe.optimiser.clip = 0;
  job.recipe.schedule.schedule = "constant";
  learn(folder / "run", job);
  const auto losses = tiny::losses(folder / "run", "valid_loss");
  const auto best = *std::min_element(losses.begin(), losses.end());
  DOCTEST_REQUIRE(losses.size() == 4);
  DOCTEST_REQUIRE(best < losses.back());
  // 50 rows have two windows of 24.
  const auto model = forecast::load(folder / "run");
  const auto series = forecast::read_series({folder / "valid"});
  forecast::MemoryUnit unit(model.shape, 24);
  double sum = 0;
  for (const std::int64_t begin : {0, 24}) {
    std::vector<float> y(24 * 6);
    unit.forward(series.row(begin), 24, model.maps.const_data_ptr<float>(), y.data());
    for (std::size_t i = 0; i < 23 * 6; ++i) {
      const float error = y[i] - series.row(begin)[i + 6];
      sum += std::min(.25, static_cast<double>(error) * error);
    }
  }
  DOCTEST_CHECK(sum / (2 * 23 * 6) == doctest::Approx(best).epsilon(1e-5));
}

DOCTEST_TEST_CASE("vectors: a run goes on from the maps of another") {
  const TemporaryFolder folder;
  auto job = job_in(folder);
  learn(folder / "first", job);
  job.from = folder / "first";
  job.recipe.optimiser.lr = 1e-12;
  job.recipe.optimiser.weight_decay = 0;
  job.recipe.steps = 1;
  learn(folder / "second", job);
  const auto first = forecast::load(folder / "first"), second = forecast::load(folder / "second");
  DOCTEST_CHECK(torch::allclose(first.maps, second.maps, 0, 1e-9));
  job.asked = {{"heads", 1}};
  job.model.shape.heads = 1;
  DOCTEST_CHECK(refusal(folder / "third", job).find("has 3, not 1") != std::string::npos);
}

DOCTEST_TEST_CASE("vectors: a plan counts rows") {
  const TemporaryFolder folder;
  const auto objective = forecast::prepare(job_in(folder));
  const auto plan = train::plan(*objective, {});
  DOCTEST_CHECK(plan["parameters"].get<std::int64_t>() == 54);
  DOCTEST_CHECK(plan["steps"].get<std::int64_t>() == 14);
  DOCTEST_CHECK(plan["rows_per_step"].get<std::int64_t>() == 6 * 23);
  DOCTEST_CHECK(plan["rows"].get<std::int64_t>() == 14 * 6 * 23);
  DOCTEST_CHECK(!plan.contains("epochs"));
}

DOCTEST_TEST_CASE("the loss of vectors goes with a mosaic, its beta with that loss") {
  const auto refusal = [](const std::string& loss, double beta, const char* arch) {
    forecast::LossOptions options{loss, beta};
    try {
      options.check(arch);
    } catch (const core::Error& error) {
      DOCTEST_CHECK(error.code() == core::Code::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  DOCTEST_CHECK(refusal("clipped-mse", 7, "mosaic").empty());
  DOCTEST_CHECK(refusal("softmax", 0, "lstm").empty());
  DOCTEST_CHECK(refusal("clipped-mse", 50, "lstm") == "--loss clipped-mse: requires --arch mosaic");
  DOCTEST_CHECK(refusal("softmax", 7, "mosaic") == "--beta: requires --loss clipped-mse");
}
