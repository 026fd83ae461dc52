#pragma once
// Further models in a mixture. Each contributes its softmax, given the text within its own windows.

#include "infer/sources/ensemble_models.h"

namespace infer {

/// A model of the mixture: its folder and weight.
struct EnsembleWeight {
  std::string folder;
  double lambda = 0;
  bool gated = false;      ///< a gate gives the weight; lambda is its constant
  double temperature = 1;  ///< of its softmax
};

struct EnsembleOptions {
  std::vector<std::string> models;   ///< FOLDER, FOLDER:auto, FOLDER:gate or FOLDER:0.3
  std::vector<double> temperatures;  ///< one for all, or one for each; empty: 1

  bool any() const { return !models.empty(); }
  /// Returns whether neither a weight nor a gate is given.
  bool open() const;
  /// Returns the weights and temperatures. The main model, models with `auto` (the default) and
  /// models with a gate divide the remaining weight equally. Throws Error{usage} for a negative
  /// weight, for weights that sum to 1 or more, for two gates, and for another number of
  /// temperatures.
  std::vector<EnsembleWeight> shares() const;
};

/// Formats resolved folders and weights as EnsembleOptions takes them.
std::vector<std::string> ensemble_texts(const std::vector<EnsembleWeight>& shares);

/// Resolved EnsembleOptions.
struct EnsemblePlan {
  std::vector<EnsembleWeight> shares;
  EnsembleModels models;  ///< one for each share, after opening

  bool any() const { return !shares.empty(); }
  /// Returns the index of the model with a gate; -1: none.
  std::int64_t gated() const;
  /// Returns the temperature of each model; empty: all are 1.
  std::vector<double> temperatures() const;
};

}  // namespace infer
