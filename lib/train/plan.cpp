#include "train/plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "train/gradient_sum.h"
#include "train/log.h"
#include "train/optimiser.h"
#include "train/shard_plan.h"

namespace train {
namespace {

constexpr int kTimed = 3;  // timed steps, after one that is not timed

}  // namespace

core::OrderedJson plan(Objective& objective, const KeepOptions& keep) {
  const auto& settings = objective.settings();
  const auto& recipe = settings.recipe;
  std::int64_t parameters = 0;
  for (const auto& [name, weight] : objective.weights()) parameters += weight.numel();
  const std::int64_t weights = 4 * parameters;
  const std::int64_t leaves = recipe.batches.accumulate * recipe.batches.batch_shards;
  const std::int64_t moments = 4 * moment_numbers(recipe.optimiser, objective.weights());
  const bool chosen =
      settings.has_valid || !settings.validation.command.empty() || recipe.average_checkpoints > 0;
  const std::int64_t best = chosen ? weights : 0;
  const double an_update = settings.scored / static_cast<double>(recipe.steps);

  std::vector<double> seconds;
  for (int i = 0; i <= kTimed; ++i) {
    const auto start = std::chrono::steady_clock::now();
    objective.update(recipe.steps, i).loss.item<double>();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin() + 1, seconds.end());
  const double update_s = seconds[1 + kTimed / 2];
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);

  core::OrderedJson report;
  report["parameters"] = parameters;
  report["steps"] = recipe.steps;
  report[settings.counted + "_per_step"] = std::llround(an_update);
  report[settings.counted] = std::llround(settings.scored);
  if (settings.epochs) report["epochs"] = rounded(*settings.epochs);
  report["weights_bytes"] = weights;
  report["gradient_bytes"] = weights * GradientSum::held(leaves, sum_of(recipe));
  report["optimiser_bytes"] = moments;
  if (settings.state_bytes > 0) report["state_bytes"] = settings.state_bytes;
  report["peak_memory_bytes"] = static_cast<std::int64_t>(usage.ru_maxrss) * 1024 + best;
  const std::int64_t checkpoint = weights + moments + best;
  report["checkpoint_bytes"] = checkpoint;
  // While a checkpoint is written, the previous one still exists.
  report["disk_bytes"] = weights + checkpoint * (std::max<std::int64_t>(keep.keep, 1) + 1);
  report["step_s"] = rounded(update_s);
  report[settings.counted + "_per_s"] = rounded(an_update / update_s);
  const StepShape step{leaves, sum_of(recipe), settings.carries};
  for (auto& row :
       shard_table(objective.weights(), objective.block_weights(), recipe.optimiser, step))
    report["per_rank"].push_back(std::move(row));
  report["hours"] = rounded(update_s * static_cast<double>(recipe.steps) / 3600);
  return report;
}

std::string sbatch_line(const core::OrderedJson& plan, std::int64_t threads, bool gpu) {
  constexpr double kMoreMemory = 1.25, kMoreTime = 1.5, kMinutes = 10, kMiB = 1 << 20, kSpare = 256;
  const double bytes = plan["peak_memory_bytes"].get<double>(), hours = plan["hours"].get<double>();
  const auto mebibytes = static_cast<std::int64_t>(std::ceil(kMoreMemory * bytes / kMiB + kSpare));
  const auto minutes = static_cast<std::int64_t>(std::ceil(kMoreTime * hours * 60 + kMinutes));
  return fmt::format("--cpus-per-task={} --mem={}M --time={}:{:02}:00{}\n", threads, mebibytes,
                     minutes / 60, minutes % 60, gpu ? " --gpus-per-node=1" : "");
}

}  // namespace train
