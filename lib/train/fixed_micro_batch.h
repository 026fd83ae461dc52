#pragma once
// Micro-batches that are alike in all but their words, each from its inputs to its gradient as one
// recorded sequence (nn::FixedSequence).

#include <functional>
#include <vector>

#include "nn/base/batch.h"
#include "nn/base/fixed_sequence.h"
#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "train/optimiser.h"

namespace train {

/// The first batch says what the others must be like: sizes, and who stands before whom in which
/// row and segment. Costs the memory of one more gradient. Not thread safe.
class FixedMicroBatch {
 public:
  /// Takes what `work` is given from a batch of the same each time, adds to the weights' gradients,
  /// returns a scalar.
  using Work = std::function<torch::Tensor(const nn::Batch& batch)>;

  /// Whether nothing in such a model's update is the host's to decide or to draw: a transformer
  /// with one softmax. What its dropout drops is drawn on the device, anew each time
  /// (nn::GraphCalls).
  static bool fits(const nn::ModelOptions& options);

  FixedMicroBatch(const NamedWeights& weights, torch::Device device)
      : weights_(weights), sequence_(device) {}

  /// Whether this batch, on the device, is like the first; one that is padded is not.
  bool takes(const nn::Batch& batch);
  /// What work(batch) gives and does. takes(batch) holds.
  torch::Tensor run(const nn::Batch& batch, const Work& work);
  bool recorded() const { return sequence_.recorded(); }

 private:
  NamedWeights weights_;
  nn::FixedSequence sequence_;
  nn::Batch batch_;  // what is recorded reads
  torch::Tensor result_;
  std::vector<torch::Tensor> gradients_;
};

}  // namespace train
