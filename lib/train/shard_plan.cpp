#include "train/shard_plan.h"

#include <algorithm>
#include <span>
#include <utility>

#include "train/gradient_buckets.h"
#include "train/gradient_shards.h"
#include "train/gradient_sum.h"
#include "train/shards.h"

namespace train {
namespace {

constexpr std::int64_t kBytes = 4;  // of a number

std::int64_t numbers_in(const NamedWeights& weights) {
  std::int64_t numbers = 0;
  for (const auto& [name, weight] : weights) numbers += weight.numel();
  return numbers;
}

std::int64_t largest(const std::vector<std::int64_t>& sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

bool is_one_of(const std::vector<torch::Tensor>& some, const torch::Tensor& weight) {
  return std::any_of(some.begin(), some.end(),
                     [&](const auto& each) { return each.is_same(weight); });
}

// The numbers of the largest bucket, without the weights whose gradients are sent by themselves.
std::int64_t largest_bucket(const NamedWeights& weights,
                            std::span<const std::vector<torch::Tensor>> sent_alone) {
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

RankBytes rank_bytes(const NamedWeights& weights,
                     const std::vector<std::vector<torch::Tensor>>& blocks,
                     const OptimiserOptions& options, const StepShape& step, std::int64_t ranks,
                     Sharded sharded) {
  const std::int64_t all = numbers_in(weights),
                     own = std::max<std::int64_t>(1, step.leaves / ranks);
  std::vector<std::int64_t> in_block;
  std::int64_t in_blocks = 0;
  for (const auto& block : blocks) {
    in_block.push_back(0);
    for (const auto& weight : block) in_block.back() += weight.numel();
    in_blocks += in_block.back();
  }
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
                                           const std::vector<std::vector<torch::Tensor>>& blocks,
                                           const OptimiserOptions& options, const StepShape& step) {
  std::vector<core::OrderedJson> rows;
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const auto& [name, sharded] : {std::pair{"none", Sharded::none},
                                        {"optimiser", Sharded::optimiser},
                                        {"gradients", Sharded::gradients},
                                        {"weights", Sharded::weights}}) {
      if (sharded == Sharded::weights && blocks.empty()) continue;
      const auto bytes = rank_bytes(weights, blocks, options, step, ranks, sharded);
      rows.push_back({{"ranks", ranks},
                      {"shard", name},
                      {"weights_bytes", bytes.weights},
                      {"gradient_bytes", bytes.gradients},
                      {"optimiser_bytes", bytes.optimiser}});
    }
  }
  return rows;
}

}  // namespace train
