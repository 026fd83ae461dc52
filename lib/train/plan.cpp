#include "train/plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "train/learner.h"
#include "train/log.h"
#include "train/optimiser.h"

namespace train {
namespace {

constexpr int kTimed = 3;  // updates, after one that is not timed

}  // namespace

core::OrderedJson plan(Run& run, const KeepOptions& keep) {
  const auto& recipe = run.recipe;
  const std::int64_t parameters = run.model->parameter_count(), weights = 4 * parameters;
  const std::int64_t moments = weights * moments_per_weight(recipe.optimiser);
  const bool chosen = run.valid || !run.validation.command.empty() || recipe.average_last > 0;
  const std::int64_t best = chosen ? weights : 0;
  const auto per_epoch = static_cast<double>(run.order->batches_per_epoch());
  const auto micro_batches = static_cast<double>(recipe.steps * recipe.batches.accumulate);
  const double epochs = micro_batches / per_epoch;
  const double tokens = epochs * static_cast<double>(run.order->targets_per_epoch());

  Learner learner(run.model, recipe, run.order->carries(), run.seed, run.device);
  std::vector<double> seconds;
  for (int i = 0; i <= kTimed; ++i) {
    std::vector<MicroBatch> micro;
    for (std::int64_t k = 0; k < recipe.batches.accumulate; ++k) {
      const std::int64_t index = i * recipe.batches.accumulate + k;
      micro.push_back(read_batch(*run.data, run.order->rows(index), index));
    }
    const auto start = std::chrono::steady_clock::now();
    learner.update(recipe.steps, micro).nats.item<double>();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin() + 1, seconds.end());
  const double update_s = seconds[1 + kTimed / 2];
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);

  core::OrderedJson report;
  report["parameters"] = parameters;
  report["updates"] = recipe.steps;
  report["tokens_per_update"] = std::llround(tokens / static_cast<double>(recipe.steps));
  report["tokens"] = std::llround(tokens);
  report["epochs"] = rounded(epochs);
  report["weights_bytes"] = weights;
  report["gradient_bytes"] = weights;
  report["optimiser_bytes"] = moments;
  report["peak_memory_bytes"] = static_cast<std::int64_t>(usage.ru_maxrss) * 1024 + best;
  const std::int64_t checkpoint = weights + moments + best;
  report["checkpoint_bytes"] = checkpoint;
  // While one is written the one before it is still there.
  report["disk_bytes"] = weights + checkpoint * (std::max<std::int64_t>(keep.keep, 1) + 1);
  report["update_s"] = rounded(update_s);
  report["tokens_per_s"] = rounded(tokens / static_cast<double>(recipe.steps) / update_s);
  report["hours"] = rounded(update_s * static_cast<double>(recipe.steps) / 3600);
  return report;
}

}  // namespace train
