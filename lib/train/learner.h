#pragma once
// One update: micro-batches through the model and the loss, gradients, clipping, the optimiser.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/checkpoint.h"
#include "nn/arch/model.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "nn/memory/joint_loss.h"
#include "nn/memory/segment_memory.h"
#include "ranks/group.h"
#include "ranks/team.h"
#include "train/batches.h"
#include "train/fixed_micro_batch.h"
#include "train/lora.h"
#include "train/optimiser.h"
#include "train/optimiser_shares.h"
#include "train/schedule.h"
#include "train/train_options.h"
#include "train/update.h"

namespace train {

/// Everything random in micro-batch i is a function of (seed, i), so that no generator's state
/// needs to be kept. Sets torch's generator at each micro-batch. Not thread safe.
///
/// An update does not know how many processes share it (gradient_sum.h). Where rows carry nothing
/// on, each takes as many of the update's micro-batches; where they do, each takes as many of the
/// micro-batches' lanes: rows [l B / L, (l + 1) B / L) of every one, which share no memory with
/// others, for l of L. Lane l's micro-batches 0, 1, ... of an update stand before lane l + 1's.
/// With memory_ranks G, G processes take a micro-batch together, each some of its rows, and see the
/// keys of all of it.
class Learner {
 public:
  /// `recipe` resolved. `carries`: rows of consecutive micro-batches continue each other. Moves the
  /// model to `device`; there micro-batches that are alike are recorded with `record`
  /// (fixed_micro_batch.h). With `lora`, its terms of the model are trained, else the weights.
  /// With thrift.recompute none is recorded.
  /// Throws Error{usage} if the processes cannot have equal shares, or the model has no blocks to
  /// recompute.
  Learner(std::shared_ptr<nn::Model> model, const Recipe& recipe, bool carries, std::uint64_t seed,
          torch::Device device, std::shared_ptr<ranks::Group> group = ranks::Group::alone(),
          bool record = true, std::shared_ptr<Lora> lora = nullptr, ThriftOptions thrift = {});

  /// Which of an update's micro-batches this process takes: of rows that carry on some of every
  /// one, else whole ones, the same for all of a team.
  Share share() const;
  /// Update `step` (0, 1, ...) from its `recipe.batches.accumulate` micro-batches, those of
  /// share(): gradient of the sum of their losses over the sum of their tokens. Throws
  /// Error{bad_data} if the gradient is not finite, as descend().
  Update update(std::int64_t step, const std::vector<MicroBatch>& micro_batches);

  /// Weights, moments, State, carried memory: of all processes, at once.
  void put(model::Checkpoint& checkpoint) const;
  void get(const model::Checkpoint& checkpoint);

  /// The rule of a micro-batch: none while the warm-up is plain, the coin of ext drawn.
  nn::MemoryRule rule(std::int64_t step, std::int64_t micro_batch) const;

  nn::Model& model() { return *model_; }
  bool recorded() const { return fixed_ && fixed_->recorded(); }
  torch::Device device() const { return device_; }

 private:
  // What rows carry on.
  struct Lane {
    nn::State state;
    nn::SegmentMemory previous;  // g and targets of earlier segments
  };
  // Those of a micro-batch that are a lane's, or this member's of its team.
  MicroBatch own_rows(const MicroBatch& micro, std::int64_t lane) const;
  // `own`: the own_rows of `micro`.
  torch::Tensor backward(std::int64_t step, const MicroBatch& micro, const MicroBatch& own,
                         std::int64_t lane);
  // Forward, loss and backward of a batch on the device; g goes to what `g` points to.
  torch::Tensor differentiate(const nn::Batch& batch, const MicroBatch& micro,
                              const MicroBatch& rows, const nn::MemoryRule& rule, Lane& lane,
                              torch::Tensor* g);
  // Whether it is computed as others were.
  bool is_fixed(std::int64_t step, const MicroBatch& rows, const nn::Batch& batch);
  // The memory of a lane's rows, whose keys are `g`: their own tokens, then earlier segments; or
  // the tokens of all that the team has of the micro-batch.
  nn::Entries entries(const Lane& lane, const torch::Tensor& g, const nn::Batch& batch,
                      const MicroBatch& micro) const;
  // Of all lanes of all processes, along the first dimension.
  torch::Tensor gather(const std::function<torch::Tensor(const Lane&)>& of) const;
  // The rows of this process's lane `own` in what gather() gave.
  torch::Tensor rows_of(const torch::Tensor& all, std::size_t own) const;

  std::shared_ptr<nn::Model> model_;
  Recipe recipe_;
  std::shared_ptr<ranks::Group> group_;
  ranks::Team team_;
  bool carries_, carries_state_;
  std::uint64_t seed_;
  torch::Device device_;
  bool bfloat16_;
  nn::LossWork loss_work_;
  std::int64_t plain_steps_;
  nn::MemoryRule memory_;
  Schedule schedule_;
  std::shared_ptr<Lora> lora_;               // null: the weights are trained
  std::unique_ptr<OptimiserShares> shares_;  // null: this process has all
  std::unique_ptr<Optimiser> optimiser_;
  std::unique_ptr<FixedMicroBatch> fixed_;  // null: none can be
  std::int64_t first_lane_;
  std::vector<Lane> lanes_;  // of this process
};

}  // namespace train
