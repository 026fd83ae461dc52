#pragma once
// One training step: forward and backward passes of micro-batches, clipping, the optimiser.
// Replays the forward and backward pass of micro-batches of equal form as one recorded sequence
// (nn::FixedSequence).

#include "nn/base/fixed_sequence.h"
#include "nn/memory/entry_ring.h"
#include "train/batches.h"
#include "train/gradient_shards.h"

namespace train {

/// Runs micro-batches of the form of the first: equal sizes, and equal visibility among rows and
/// segments. Needs memory for one more gradient. Not thread safe.
class FixedMicroBatch {
 public:
  /// Work that reads a batch at fixed addresses, adds to the weights' gradients and returns a
  /// scalar.
  using Work = std::function<torch::Tensor(const nn::Batch& batch)>;

  /// Returns whether a step of the model needs no decisions or random numbers on the host: a
  /// transformer with a single softmax. Dropout masks are drawn on the device at each replay
  /// (nn::GraphCalls).
  static bool fits(const nn::ModelOptions& options);

  FixedMicroBatch(const NamedWeights& weights, torch::Device device)
      : weights_(weights), sequence_(device) {}

  /// Returns whether this batch, on the device, has the form of the first; false for padded ones.
  bool takes(const nn::Batch& batch);
  /// Returns the result of work(batch). Requires takes(batch).
  torch::Tensor run(const nn::Batch& batch, const Work& work);
  bool recorded() const { return sequence_.recorded(); }

 private:
  NamedWeights weights_;
  nn::FixedSequence sequence_;
  nn::Batch batch_;  // input of the recording
  torch::Tensor result_;
  std::vector<torch::Tensor> gradients_;
};

/// Runs steps. All randomness of micro-batch i is a function of (seed, i), so that no generator
/// state must be saved; torch's generator is set at each micro-batch. Not thread safe.
///
/// Results do not depend on the number of processes (gradient_sum.h). Without carried rows, each
/// process takes an equal number of the step's micro-batches. With carried rows, each takes an
/// equal number of batch shards: rows [l B / L, (l + 1) B / L) of every micro-batch, for l of L,
/// which share no memory with others. Micro-batches 0, 1, ... of batch shard l in a step precede
/// those of l + 1. With memory_ranks G, G processes share a micro-batch, each with some rows, and
/// see the keys of all its rows.
class Learner {
 public:
  /// `recipe` is resolved. `carries`: rows of consecutive micro-batches continue one another. Moves
  /// the model to `device`; `record` records micro-batches of equal form there
  /// (FixedMicroBatch). `part`, if not null, is trained instead of all weights. Throws
  /// Error{usage} if the processes cannot have equal shares.
  Learner(std::shared_ptr<nn::Model> model, const Recipe& recipe, bool carries, std::uint64_t seed,
      torch::Device device, std::shared_ptr<ranks::Group> group = ranks::Group::alone(),
      bool record = true, std::shared_ptr<TrainedPart> part = nullptr, ThriftOptions thrift = {});

  /// Returns the micro-batches of a step that this process reads: with carried rows, parts of all;
  /// else whole ones, equal within a team. With sharded gradients, neighbours belong to different
  /// teams, so that their sum is soon shared out.
  MicroBatchShare share() const;
  /// Runs step `step` (0, 1, ...) on this process's share() of the `recipe.batches.accumulate`
  /// micro-batches: the gradient of the sum of losses divided by the number of tokens. Throws
  /// Error{bad_data} if the gradient is not finite, as descend().
  Update update(std::int64_t step, const std::vector<MicroBatch>& micro_batches);

  /// Save and restore weights, moments, State and carried memory of all processes. Collective.
  void put(model::Checkpoint& checkpoint) const;
  void get(const model::Checkpoint& checkpoint);

  /// Gives the model the numbers of other weights of equal names and shapes.
  void take_weights(const NamedWeights& from);

  /// Between the two calls the first process has all weights whole, as validation needs them. Both
  /// are collective.
  void gather_weights();
  void release_weights();

  /// Returns the rule of a micro-batch: no memory during the plain warm-up; draws the coin of ext.
  nn::MemoryRule rule(std::int64_t step, std::int64_t micro_batch) const;

  nn::Model& model() { return *model_; }
  bool recorded() const { return fixed_ && fixed_->recorded(); }
  torch::Device device() const { return device_; }

 private:
  // Weights whose gradients are summed whole.
  const NamedWeights& summed_weights() const;
  // Runs all leaves; the optimiser's weights get their gradients.
  template <class Sum>
  Update run(std::int64_t step, const std::vector<MicroBatch>& micro_batches, Sum&& sum);
  // State carried by a batch shard.
  struct BatchShard {
    nn::State state;
    nn::SegmentMemory previous;  // g and targets of earlier segments
  };
  // Returns the rows of a batch shard, or of this member of the team.
  MicroBatch own_rows(const MicroBatch& micro, std::int64_t batch_shard) const;
  // `own`: own_rows() of `micro`.
  torch::Tensor backward(
      std::int64_t step, const MicroBatch& micro, const MicroBatch& own, std::int64_t batch_shard);
  // Runs forward, loss and backward of a batch on the device; stores g in `*g`.
  torch::Tensor differentiate(const nn::Batch& batch, const MicroBatch& micro,
      const MicroBatch& rows, const nn::MemoryRule& rule, BatchShard& batch_shard,
      torch::Tensor* g);
  // Returns whether the batch can be replayed.
  bool is_fixed(std::int64_t step, const MicroBatch& rows, const nn::Batch& batch);
  // Returns the memory of a batch shard's rows, whose keys are `g`: their own tokens, then earlier
  // segments; or the tokens of the team's whole micro-batch.
  nn::Entries entries(const BatchShard& batch_shard, const torch::Tensor& g, const nn::Batch& batch,
      const MicroBatch& micro) const;
  template <class Work> void each_weight_here(const Work& work) const;
  // Gathers tensors of all batch shards of all processes along the first dimension.
  torch::Tensor gather(const std::function<torch::Tensor(const BatchShard&)>& of) const;
  // Returns the rows of this process's batch shard `own` in the result of gather().
  torch::Tensor rows_of(const torch::Tensor& all, std::size_t own) const;

  std::shared_ptr<nn::Model> model_;
  Recipe recipe_;
  std::shared_ptr<ranks::Group> group_;
  ranks::Team team_;
  Sharded sharded_;
  bool carries_, carries_state_;
  std::uint64_t seed_;
  torch::Device device_;
  bool bfloat16_;
  nn::LossWork loss_work_;
  std::int64_t further_from_, plain_steps_;
  nn::MemoryRule memory_;
  Schedule schedule_;
  std::shared_ptr<TrainedPart> part_;  // null: all weights are trained
  std::unique_ptr<Shards> shards_;     // null: this process has all
  std::shared_ptr<LentWeights> lent_;  // null: all weights are present
  std::unique_ptr<Optimiser> optimiser_;
  std::unique_ptr<GradientBuckets> buckets_;  // null: sums over ranks go through the host
  std::unique_ptr<FixedMicroBatch> fixed_;    // null: not supported
  std::int64_t first_batch_shard_;
  std::vector<BatchShard> batch_shards_;  // of this process
};

}  // namespace train
