#pragma once
// Weights of blocks that a process has whole only while a block computes (ZeRO stage 3, as FSDP).

#include "nn/base/recomputing.h"
#include "train/gradient_shards.h"

namespace train {

/// Lends weights that it fetches from the processes' pieces. All processes run the same blocks in
/// the same order: in a micro-batch up to the last one, and then back to the first. Where
/// shards.fetches_ahead(), the weights of the next block come while the present one computes. Not
/// thread safe.
class LentWeights : public nn::WeightLender {
 public:
  /// `blocks`: weights of each block, which are sent away. `shards` must outlive the object.
  LentWeights(Shards& shards, const std::vector<std::vector<torch::Tensor>>& blocks);

  void lend(const std::vector<torch::Tensor>& weights) override;
  void take_back(const std::vector<torch::Tensor>& weights) override;
  void offer(
      const std::vector<torch::Tensor>& weights, std::vector<torch::Tensor>& gradients) override;

  /// Sets the sum that takes offered gradients; null: none.
  void sum_into(GradientShards* sum) { sum_ = sum; }
  /// Drops all weights that are still lent: the micro-batch's backward pass is done.
  void take_all_back();

  /// Fetches all weights of the first process, or drops them. fetch_all() is collective.
  void fetch_all();
  void drop_all();

 private:
  struct Block {
    std::vector<std::size_t> weights;  // in shards
    std::int64_t lent = 0;
    bool here = false;  // fetched, maybe not arrived
    Queued arrival;
  };
  std::size_t index_of(const std::vector<torch::Tensor>& weights) const;
  void fetch(Block& block);
  void drop(Block& block);
  // The block that is lent after this one, unless it is here; null: unknown.
  Block* next_after(std::size_t block);

  Shards& shards_;
  std::vector<Block> blocks_;
  std::map<const void*, std::size_t> block_of_;  // by a weight's identity
  std::optional<std::size_t> before_;            // the block lent before, in this micro-batch
  GradientShards* sum_ = nullptr;
};

}  // namespace train
