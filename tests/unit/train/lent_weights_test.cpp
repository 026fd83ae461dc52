// Weights of blocks that come from the processes' pieces when a block computes.

#include "train/gradient_shards.h"

#include <doctest/doctest.h>

#include "unit/ranks/nccl_stub.h"
#include "unit/ranks/processes.h"

namespace {

constexpr std::int64_t kLentBlocks = 4;

std::vector<std::vector<torch::Tensor>> blocks_of_weights() {
  torch::manual_seed(8);
  std::vector<std::vector<torch::Tensor>> blocks;
  for (std::int64_t i = 0; i < kLentBlocks; ++i)  // one weight is cut among two ranks
    blocks.push_back(
        {torch::randn({300, 280}).requires_grad_(), torch::randn({9}).requires_grad_()});
  return blocks;
}

// The blocks that are in memory, as digits; or what is wrong with one of `asked`.
std::string present(const std::vector<std::vector<torch::Tensor>>& blocks,
    const std::vector<std::vector<torch::Tensor>>& want, std::size_t asked) {
  std::string text;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i][0].storage().nbytes() > 0) text += std::to_string(i);
  for (std::size_t i = 0; i < want[asked].size(); ++i)
    if (!torch::equal(blocks[asked][i], want[asked][i])) return "wrong numbers";
  return text + " ";
}

// What is in memory while each block of a micro-batch computes, forward and backward.
std::string micro_batches(ranks::Group& rank) {
  const std::shared_ptr<ranks::Group> group(&rank, [](ranks::Group*) {});
  const auto blocks = blocks_of_weights(), want = blocks_of_weights();
  train::NamedWeights weights;
  for (const auto& block : blocks)
    for (const auto& weight : block)
      weights.emplace_back("w" + std::to_string(weights.size()), weight);
  train::Shards shards(weights, {}, group);
  train::LentWeights lent(shards, blocks);
  std::string text;
  for (int micro = 0; micro < 2; ++micro) {
    const std::size_t last = blocks.size() - 1;
    for (std::size_t i = 0; i < last; ++i) {
      lent.lend(blocks[i]);
      text += present(blocks, want, i);
      lent.take_back(blocks[i]);
    }
    lent.lend(blocks[last]);
    text += present(blocks, want, last) + "| ";
    for (std::size_t i = last; i-- > 0;) {
      lent.lend(blocks[i]);
      text += present(blocks, want, i);
      lent.take_back(blocks[i]);
    }
    lent.take_all_back();
    for (const auto& block : blocks)
      for (const auto& weight : block)
        if (weight.storage().nbytes() > 0) return "still here";
  }
  return text;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a block's weights come when it computes; with NCCL, the next block's beside it") {
  if (!use_nccl_stub()) return;
  const std::string plainly = "0 1 2 3 | 23 13 03 ", ahead = "01 12 23 23 | 123 013 03 ";
  for (const auto& rank : run_ranks(2, micro_batches)) {
    DOCTEST_CHECK(rank.code == 0);
    DOCTEST_CHECK(rank.text == plainly + plainly);
  }
  for (const auto& rank : run_ranks(2, [](ranks::Group& group) {
         group.connect("nccl", torch::kCPU);
         return micro_batches(group);
       })) {
    DOCTEST_CHECK(rank.code == 0);
    DOCTEST_CHECK(rank.text == ahead + ahead);
  }
}
