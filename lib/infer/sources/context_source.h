#pragma once
// Local and long memory: positions of the window and before it. They join the head's softmax, with
// the temperature common to all its parts (MemoryPlan::joint_temperature), or form a distribution
// of their own.

#include "infer/sources/memory_plan.h"

namespace infer {

struct ContextOptions {
  std::string memory;      ///< none, or a sum of local and long; empty: as in training
  std::string long_reach;  ///< --long: "12288" tokens or "4seg" segments; empty: 4seg
  /// joint, interpolate or both; see StoreOptions::combine, which may follow it.
  std::string combine = "joint";
  JointOptions local, far;  ///< settings in the joint softmax
  MemoryWeight lambda;      ///< with combine = interpolate; unset: 0.25
};

/// Resolved ContextOptions.
struct ContextPlan {
  nn::MemoryRule rule;  ///< reach in tokens; its temperature is not used
  std::string combine = "joint";
  double lambda = 0.25;
  JointPart local{"local"}, far{"long"};

  bool any() const { return rule.any(); }
  bool interpolated() const { return combine == "interpolate" && rule.any(); }
};

}  // namespace infer
