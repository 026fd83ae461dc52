#pragma once
// Replays the forward and backward pass of micro-batches of equal form as one recorded sequence
// (nn::FixedSequence).

#include "nn/base/batch.h"
#include "nn/base/fixed_sequence.h"
#include "nn/base/model_options.h"
#include "train/optimiser.h"

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

}  // namespace train
