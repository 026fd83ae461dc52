#pragma once
// Sums a step's gradients so that each process has the sum of its pieces alone (ZeRO stage 2).
// Weights of blocks that a process has whole only while a block computes (ZeRO stage 3, as FSDP).

#include "nn/base/recomputing.h"
#include "train/shards.h"

namespace train {

/// Which micro-batches of a step are neighbours in the tree of GradientSum: those of different
/// processes (micro-batch i belongs to process i modulo their number, or blocks of an odd number
/// of them do), or those of one process, whose rows carry state from one to the next.
enum class Neighbours { processes, own };

/// The sum of GradientSum, in the same order. A bucket of weights is summed over the processes, and
/// its whole gradients are freed, as soon as the backward pass of a block has completed it, in the
/// order of Shards::buckets(). With Neighbours::own whole gradients of the earlier micro-batches
/// are kept until the last, as GradientSum keeps them.
class GradientShards {
 public:
  /// `own`: leaves of this process. `early`: sums buckets during the backward pass, in which there
  /// must be no other communication then; else after it.
  GradientShards(Shards& shards, std::int64_t own, ranks::Group& group, ranks::Sum how,
      Neighbours neighbours, bool early);
  GradientShards(GradientShards&&) = delete;

  /// Returns how many neighbouring micro-batches a process adds before others are added to them,
  /// for `own` leaves.
  static std::int64_t block(std::int64_t own, ranks::Sum how);

  /// Sums the present leaf's gradients of some weights before its backward pass ends, if the leaf
  /// completes a block: resets `gradients`, of which undefined ones are 0. Else does nothing.
  /// Collective.
  void take(const std::vector<std::size_t>& which, std::vector<torch::Tensor>& gradients);
  /// Adds a leaf whose backward pass is done. Collective.
  void add(const torch::Tensor& nats, std::int64_t scored);
  /// Completes the sum: shards.own() get their gradients, and the update its loss and count.
  void finish(Update& update);

 private:
  using Tensors = std::vector<torch::Tensor>;
  bool completes() const;  // the present leaf completes a sum over the processes
  void arrived(std::size_t weight);
  void reduce_next();
  // Sums the weights' gradients, with the earlier blocks' whole ones; `fresh`: not yet added, or
  // empty.
  void reduce(const std::vector<std::size_t>& which, Tensors fresh);
  void keep_whole();
  void add_to(std::vector<Tensors>& levels, Tensors block) const;
  void add_block();

  Shards& shards_;
  ranks::Group& group_;
  ranks::Sum how_;
  Neighbours neighbours_;
  std::int64_t own_, block_, seen_ = 0, scored_ = 0;
  torch::Tensor nats_;                  // of the present block
  Tensors block_nats_;                  // of blocks
  std::vector<bool> arrived_;           // weights with the gradient of the present leaf
  std::vector<bool> taken_;             // weights whose gradient take() has summed
  std::size_t next_ = 0;                // bucket
  Tensors present_;                     // sums of own pieces that the present block has
  std::vector<Tensors> whole_;          // [k]: whole gradients of 2^k blocks, or empty
  std::vector<Tensors> summed_;         // [k]: sums of own pieces of 2^k blocks, or empty
  std::optional<GradientHooks> hooks_;  // last member, because they call arrived()
};

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
