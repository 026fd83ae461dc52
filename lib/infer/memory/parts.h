#pragma once
// Scores of R targets from all sources, at every point of a grid.

#include <vector>

#include "infer/memory/mixture.h"
#include "infer/sources/source.h"
#include "nn/base/torch.h"

namespace infer {

/// All tensors are float64 on the CPU.
struct Parts {
  torch::Tensor head, log_z = {};  ///< (R): log p without memories, and its log-normaliser
  torch::Tensor confidence = {};   ///< (R, kConfidence), if gates need it
  std::vector<SourceScores> sources = {};
  torch::Tensor weight = {};  ///< (R): weight of each token; undefined: 1

  /// Returns the components of the mixture at a point, given by the indices of its values in the
  /// axes (default 0). `kept`: the plan's kinds that take part; other kinds have no entries.
  Components at(const MemoryPlan& plan, const std::vector<std::size_t>& places = {},
                const std::vector<bool>* kept = nullptr) const;
  /// Returns the neighbours from datastores; null: none.
  const Neighbours* found() const;
  /// Lists all tensors, possibly undefined, in a fixed order: (..., R) or (..., R, F).
  struct Member {
    torch::Tensor* tensor;
    bool featured;  ///< (..., R, F)
  };
  std::vector<Member> members();
};

}  // namespace infer
