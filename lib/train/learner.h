#pragma once
// One update: micro-batches through the model and the loss, gradients, clipping, the optimiser.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "model/checkpoint.h"
#include "nn/memory.h"
#include "nn/model.h"
#include "nn/torch.h"
#include "train/batches.h"
#include "train/optimiser.h"
#include "train/options.h"
#include "train/schedule.h"

namespace train {

/// What an update was like. Tensors stay on the model's device, so that asking for them is the only
/// synchronisation.
struct Update {
  torch::Tensor nats;  ///< float64 scalar: sum over the tokens
  torch::Tensor norm;  ///< float64 scalar: of the gradient of the mean loss, before clipping
  std::int64_t tokens = 0;
  double lr = 0;
};

/// Everything random in micro-batch i is a function of (seed, i), so that no generator's state
/// needs to be kept. Sets torch's generator at each micro-batch. Not thread safe.
class Learner {
 public:
  /// `recipe` resolved. `carries`: rows of consecutive micro-batches continue each other. Moves the
  /// model to `device`.
  Learner(std::shared_ptr<nn::Model> model, const Recipe& recipe, bool carries, std::uint64_t seed,
          torch::Device device);

  /// Update `step` (0, 1, ...) from its `recipe.batches.accumulate` micro-batches: gradient of the
  /// sum of their losses over the sum of their tokens. Throws Error{bad_data} if the gradient is
  /// not finite (on the CPU at once).
  Update update(std::int64_t step, const std::vector<MicroBatch>& micro_batches);

  /// Weights, moments, State, carried memory.
  void put(model::Checkpoint& checkpoint) const;
  void get(const model::Checkpoint& checkpoint);

  /// The rule of a micro-batch: none while the warm-up is plain, the coin of ext drawn.
  nn::MemoryRule rule(std::int64_t step, std::int64_t micro_batch) const;

  nn::Model& model() { return *model_; }
  torch::Device device() const { return device_; }

 private:
  torch::Tensor backward(std::int64_t step, const MicroBatch& micro);
  nn::Entries carried() const;
  void remember(const torch::Tensor& g, const nn::Batch& batch);

  std::shared_ptr<nn::Model> model_;
  Recipe recipe_;
  bool carries_state_, carries_memory_;
  std::uint64_t seed_;
  torch::Device device_;
  bool bfloat16_;
  std::int64_t plain_steps_;
  nn::MemoryRule memory_;
  Schedule schedule_;
  std::unique_ptr<Optimiser> optimiser_;
  nn::State state_;
  std::deque<nn::Entries> previous_;  // columns: g and targets of earlier segments, oldest first
};

}  // namespace train
