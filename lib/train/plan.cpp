#include "train/plan.h"

#include <sys/resource.h>

#include "train/gradient_shards.h"
#include "train/log.h"

namespace train {
namespace {

constexpr int kTimed = 3;  // timed steps, after one that is not timed

constexpr std::int64_t kBytes = 4;  // of a number

std::int64_t numbers_in(const NamedWeights& weights) {
  return core::sum_of(weights, [](const auto& named) { return named.second.numel(); });
}

std::int64_t largest(const std::vector<std::int64_t>& sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

bool is_one_of(const std::vector<torch::Tensor>& some, const torch::Tensor& weight) {
  return std::ranges::any_of(some, [&](const auto& each) { return each.is_same(weight); });
}

// The numbers of the largest bucket, without the weights whose gradients are sent by themselves.
std::int64_t largest_bucket(
    const NamedWeights& weights, std::span<const std::vector<torch::Tensor>> sent_alone) {
  std::vector<std::int64_t> numbers;
  for (const auto& bucket : buckets_of(weights)) {
    numbers.push_back(0);
    for (const auto i : bucket)
      if (std::none_of(sent_alone.begin(), sent_alone.end(),
              [&](const auto& some) { return is_one_of(some, weights[i].second); }))
        numbers.back() += weights[i].second.numel();
  }
  return largest(numbers);
}

}  // namespace

core::OrderedJson plan(Objective& objective, const KeepOptions& keep) {
  const auto& settings = objective.settings();
  const auto& recipe = settings.recipe;
  const std::int64_t parameters = numbers_in(objective.weights()), weights = 4 * parameters;
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

  core::OrderedJson report{{"parameters", parameters}, {"steps", recipe.steps}};
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

RankBytes rank_bytes(const NamedWeights& weights,
    const std::vector<std::vector<torch::Tensor>>& blocks, const OptimiserOptions& options,
    const StepShape& step, std::int64_t ranks, Sharded sharded) {
  const std::int64_t all = numbers_in(weights),
                     own = std::max<std::int64_t>(1, step.leaves / ranks);
  const auto in_block = core::mapped(blocks, [](const auto& block) {
    return core::sum_of(block, [](const auto& weight) { return weight.numel(); });
  });
  const std::int64_t in_blocks = core::sum_of(in_block, std::identity());
  const bool lends = sharded == Sharded::weights;
  // The last block's gradients are not sent by themselves.
  const auto alone = std::span(blocks).first(lends && !blocks.empty() ? blocks.size() - 1 : 0);
  const auto bucket = std::max(largest_bucket(weights, alone), lends ? largest(in_block) : 0);
  RankBytes most{};
  for (const auto& pieces : cut_in_pieces(weights, options, ranks)) {
    NamedWeights mine;
    std::int64_t slice = 0, away = 0;
    for (const auto& piece : pieces) {
      const auto& [name, weight] = weights[piece.weight];
      // Of the shape by which the optimiser decides what moments it has.
      mine.emplace_back(name, piece.size() == weight.numel() ? weight
                                                             : weight.detach().view({-1}).narrow(
                                                                   0, piece.begin, piece.size()));
      slice += piece.size();
      for (const auto& block : blocks)
        if (is_one_of(block, weight)) away += piece.size();
    }
    // Blocks at work are the last, which stays until the micro-batch is done, and one other.
    const auto last = in_block.empty() ? 0 : in_block.back();
    RankBytes bytes{};
    bytes.weights = lends ? all - in_blocks + away + last + largest(in_block) : all;
    bytes.optimiser = moment_numbers(options, sharded == Sharded::none ? weights : mine);
    const auto whole = GradientSum::held(own, step.how);
    if (sharded < Sharded::gradients) {
      // Sums of micro-batches; or the last of them, a message, and the half that is received.
      bytes.gradients = std::max(whole * all, all + bucket) + bucket / 2;
    } else {
      // Sums of the own pieces, a message, and whole gradients that are not summed yet: what a
      // backward pass has made, or all that neighbours add to one another.
      const auto block = GradientShards::block(own, step.how);
      const bool adds = step.carries ? own > 1 : block > 1;
      const auto unsummed = adds    ? all * (step.carries ? whole : 1)
                            : lends ? all - in_blocks + last + largest(in_block)
                                    : bucket;
      const auto sums = step.carries ? 1 : GradientSum::held(own / block, step.how);
      bytes.gradients = slice * sums + unsummed + bucket;
    }
    most = {std::max(most.weights, bytes.weights), std::max(most.gradients, bytes.gradients),
        std::max(most.optimiser, bytes.optimiser)};
  }
  return {kBytes * most.weights, kBytes * most.gradients, kBytes * most.optimiser};
}

std::vector<core::OrderedJson> shard_table(const NamedWeights& weights,
    const std::vector<std::vector<torch::Tensor>>& blocks, const OptimiserOptions& options,
    const StepShape& step) {
  std::vector<core::OrderedJson> rows;
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const auto& [name, sharded] :
        {std::pair{"none", Sharded::none}, {"optimiser", Sharded::optimiser},
            {"gradients", Sharded::gradients}, {"weights", Sharded::weights}}) {
      if (sharded == Sharded::weights && blocks.empty()) continue;
      const auto bytes = rank_bytes(weights, blocks, options, step, ranks, sharded);
      rows.push_back({{"ranks", ranks}, {"shard", name}, {"weights_bytes", bytes.weights},
          {"gradient_bytes", bytes.gradients}, {"optimiser_bytes", bytes.optimiser}});
    }
  }
  return rows;
}

}  // namespace train
