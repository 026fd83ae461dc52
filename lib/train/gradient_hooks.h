#pragma once
// Calls a function while a backward pass runs, as soon as it has added to a weight's gradient.

#include <cstddef>
#include <functional>

#include "train/optimiser.h"

namespace train {

/// The hooks of some weights, while the object exists. A weight has at most one hook.
class GradientHooks {
 public:
  /// `arrived` gets the index of a weight, in the thread of the backward pass. Weights that need no
  /// gradient have no hook. `weights` outlive the object.
  GradientHooks(const NamedWeights& weights, const std::function<void(std::size_t)>& arrived);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  const NamedWeights& weights_;
};

}  // namespace train
