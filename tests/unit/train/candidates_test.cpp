// Which weights become the model: a mean of the last weights, or those that a command scores best.
// Nothing is lost if the command fails or is stopped.

#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "model/folder.h"
#include "unit/train/tiny.h"

namespace {

using train::Outcome;

const train::KeepOptions kEvery2 = {.checkpoint_every = 2, .keep = 99};

/// Returns name -> weight of the checkpoint after step `step`.
std::map<std::string, torch::Tensor> weights_at(const std::string& path, std::int64_t step) {
  const auto checkpoint = model::load_checkpoint(path + "/step-" + std::to_string(step));
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (name.rfind("model.", 0) == 0) weights[name.substr(6)] = tensor;
  return weights;
}

/// Checks that the model has these weights.
bool holds(const std::string& path, const std::map<std::string, torch::Tensor>& wanted) {
  const auto loaded = model::load(path);
  const auto weights = loaded.model->named_weights();
  bool same = weights.size() == wanted.size();
  for (const auto& [name, weight] : weights)
    same = same && torch::allclose(weight, wanted.at(name), 1e-6, 1e-7);
  return same;
}

train::Job job_in(const TemporaryFolder& folder) {
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.valid_every = 4;
  return job;
}

}  // namespace

DOCTEST_TEST_CASE(
    "--average-checkpoints: the model is the mean of the last points, stopped between or not") {
  const TemporaryFolder folder;
  auto job = job_in(folder);
  job.recipe.average_checkpoints = 3;
  tiny::train(folder / "whole", job, -1, false, kEvery2);
  auto mean = weights_at(folder / "whole", 14);  // 14 steps; then 10 and 6
  for (const std::int64_t step : {10, 6})
    for (const auto& [name, tensor] : weights_at(folder / "whole", step)) mean[name] += tensor;
  for (auto& [name, tensor] : mean) tensor /= 3;
  DOCTEST_CHECK(holds(folder / "whole", mean));
  for (const std::int64_t at : {5, 10, 12})
    DOCTEST_CHECK(tiny::train(folder / "parts", job, at, false, kEvery2) == Outcome::stopped);
  tiny::train(folder / "parts", job, -1, false, kEvery2);
  DOCTEST_CHECK(tiny::files(folder / "parts").at("model.safetensors") ==
                tiny::files(folder / "whole").at("model.safetensors"));
}

DOCTEST_TEST_CASE("--valid-command: the model with the best score stays, whichever way is better") {
  for (const bool higher : {true, false}) {
    const TemporaryFolder folder;
    auto job = job_in(folder);
    // 2, 1, 3, 2 at steps 4, 8, 12, 14.
    job.validation.command =
        fmt::format("test -s {{}}/model.safetensors && echo x >>{0}; sed -n $(wc -l <{0})p {1}",
            folder / "calls", folder / "scores");
    std::ofstream(folder / "scores") << "2\n1\n3\n2\n";
    job.validation.better = higher ? "higher" : "lower";
    tiny::train(folder / "run", job, -1, false, kEvery2);
    DOCTEST_CHECK(tiny::losses(folder / "run", "valid_score") == std::vector<double>{2, 1, 3, 2});
    DOCTEST_CHECK(holds(folder / "run", weights_at(folder / "run", higher ? 12 : 8)));
    for (const auto& [name, text] : tiny::files(folder / "run"))
      DOCTEST_CHECK(name.find("tmp") == std::string::npos);
  }
}

DOCTEST_TEST_CASE("--valid-command that fails or is stopped is run again from where it was") {
  const TemporaryFolder folder;
  auto job = job_in(folder);
  job.validation.command = "wc -c <{}/model.safetensors";
  tiny::train(folder / "whole", job);
  const auto good = job.validation.command;
  for (const char* bad : {"exit 1", "echo none"}) {
    job.validation.command = bad;
    DOCTEST_CHECK_THROWS_AS(tiny::train(folder / "mended", job), core::Error);
    DOCTEST_CHECK(std::filesystem::exists(folder / "mended/step-4"));
  }
  job.validation.command = good;
  DOCTEST_CHECK(tiny::train(folder / "mended", job) == Outcome::finished);
  DOCTEST_CHECK((tiny::files(folder / "mended") == tiny::files(folder / "whole")));

  // A stop is requested while the last validation's command runs.
  const std::string mark = folder / "running";
  job.validation.command = "test $(wc -l <" + (folder / "stopped") +
                           "/metrics.jsonl) -lt 8 || { touch " + mark + "; sleep 600; }; " + good;
  nn::start(1, job.seed);
  {
    const train::RunFolder run_folder(folder / "stopped");
    train::TokenObjective objective(train::prepare(job));
    train::Callbacks watch;
    watch.stop = [&] { return std::filesystem::exists(mark); };
    DOCTEST_CHECK(train::train_in(run_folder, objective, {}, watch) == Outcome::stopped);
  }
  DOCTEST_CHECK(std::filesystem::exists(folder / "stopped/step-14"));
  job.validation.command = good;
  DOCTEST_CHECK(tiny::train(folder / "stopped", job) == Outcome::finished);
  DOCTEST_CHECK((tiny::files(folder / "stopped") == tiny::files(folder / "whole")));
  // A score that differs from the one that selected so far.
  tiny::train(folder / "other", job, 6);
  job.validation.better = "lower";
  DOCTEST_CHECK_THROWS_AS(tiny::train(folder / "other", job), core::Error);
}
