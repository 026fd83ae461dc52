#pragma once
// What all sources gave of R targets, at every point of a grid.

#include <vector>

#include "infer/memory/mixture.h"
#include "infer/sources/source.h"
#include "nn/base/torch.h"

namespace infer {

/// float64 on the CPU.
struct Parts {
  torch::Tensor head, log_z = {};  ///< (R): without any memory, and what normalises it
  torch::Tensor confidence = {};   ///< (R, kConfidence), where gates ask for it
  std::vector<SourceScores> sources = {};
  torch::Tensor weight = {};  ///< (R): for how many tokens each counts; undefined: for one

  /// The components of the mixture at a point: the places of its values in the grid's axes; those
  /// that are not given are 0. `kept`: of the plan's kinds, those that take part; the others see
  /// nothing.
  Components at(const MemoryPlan& plan, const std::vector<std::size_t>& places = {},
                const std::vector<bool>* kept = nullptr) const;
  /// The entries that were looked up; null: none.
  const Neighbours* found() const;
  /// All of its tensors, some undefined, in a fixed order: (..., R), or (..., R, F).
  struct Member {
    torch::Tensor* tensor;
    bool featured;  ///< (..., R, F)
  };
  std::vector<Member> members();
};

}  // namespace infer
