#pragma once
// Scores of further models for the tokens of a text, each through its own windows.

#include <cstdint>
#include <memory>
#include <vector>

#include "infer/sources/with_models.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Scores the data ahead of the caller and keeps scores until the caller reads them, at most a few
/// batches of windows. Not thread safe.
class WithScores {
 public:
  /// `data` must outlive it.
  WithScores(const WithPlan& plan, const shard::Dataset& data);
  ~WithScores();

  /// Returns log p of elements [first, first + n) of the data by each model: (models, n) float64 on
  /// the CPU; NaN for elements that the model's windows do not score. Calls must ask for elements
  /// in order, beginning anywhere. Throws Error{bad_data} for a token outside a model's vocabulary.
  torch::Tensor at(std::uint64_t first, std::int64_t n);
  /// Returns the confidence of the gated model for the last at(), (n, kConfidence), NaN at elements
  /// without scores; undefined without a gate.
  const torch::Tensor& confidence() const { return confidence_; }

 private:
  class Walk;
  std::vector<std::unique_ptr<Walk>> walks_;
  std::int64_t gated_;
  torch::Tensor confidence_;
};

}  // namespace infer
