#pragma once
// What further models give the tokens of a text, each through windows of its own.

#include <cstdint>
#include <memory>
#include <vector>

#include "infer/sources/with_models.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Goes over the data beside the one who asks: keeps what was scored and not asked for yet, no more
/// than a few batches of windows. Not thread safe.
class WithScores {
 public:
  /// `data` must outlive it.
  WithScores(const WithPlan& plan, const shard::Dataset& data);
  ~WithScores();

  /// log p of elements [first, first + n) of the data by each model: (models, n) float64 on the
  /// CPU, NaN where its windows do not score one. Elements are asked for in their order; the first
  /// of them may stand anywhere. Throws Error{bad_data} for a token outside a model's vocabulary.
  torch::Tensor at(std::uint64_t first, std::int64_t n);
  /// Of the last at(): how sure the model with a gate was, (n, kConfidence), NaN in the same
  /// places; undefined: there is none.
  const torch::Tensor& confidence() const { return confidence_; }

 private:
  class Walk;
  std::vector<std::unique_ptr<Walk>> walks_;
  std::int64_t gated_;
  torch::Tensor confidence_;
};

}  // namespace infer
