#pragma once
// Options of further models at test time.

#include <string>
#include <vector>

namespace infer {

/// A model of the mixture: its folder and weight.
struct WithShare {
  std::string folder;
  double lambda = 0;
  bool gated = false;  ///< a gate gives the weight; lambda is its constant
};

struct WithOptions {
  std::vector<std::string> models;  ///< FOLDER, FOLDER:auto, FOLDER:gate or FOLDER:0.3

  bool any() const { return !models.empty(); }
  /// Returns whether neither a weight nor a gate is given.
  bool open() const;
  /// Returns the weights. The main model, models with `auto` (the default) and models with a gate
  /// divide the remaining weight equally. Throws Error{usage} for a negative weight, for weights
  /// that sum to 1 or more, and for two gates.
  std::vector<WithShare> shares() const;
};

/// Formats resolved folders and weights as WithOptions takes them.
std::vector<std::string> with_texts(const std::vector<WithShare>& shares);

}  // namespace infer
