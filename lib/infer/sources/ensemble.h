#pragma once
// Further models in a mixture. Each contributes its softmax, given the text within its own windows.

#include "infer/sources/memory_options.h"
#include "infer/windows/window_options.h"

namespace infer {

struct MemoryOptions;

/// A model in evaluation mode and its window options.
struct BesideModel {
  model::Loaded loaded;
  WindowOptions windows;
};

/// Resolved EnsembleOptions.
struct EnsemblePlan {
  std::vector<EnsembleWeight> shares;
  std::vector<std::shared_ptr<const BesideModel>> models;  ///< one for each share, after opening

  bool any() const { return !shares.empty(); }
  /// Returns the index of the model with a gate; -1: none.
  std::int64_t gated() const;
  /// Returns the temperature of each model; empty: all are 1.
  std::vector<double> temperatures() const;
};

/// Opens the models of `options` beside `loaded` and sets the reach of layers in all of them; call
/// it before windows are planned. Throws Error{bad_data} with both fingerprints for a different
/// tokenizer. Throws Error{usage} if only one of two models reads a source, and for windows that
/// score other tokens (--protocol llama.cpp). Also throws the errors of model::load(),
/// plan_windows() and LayerReachOptions::apply().
std::vector<std::shared_ptr<const BesideModel>> open_beside(const MemoryOptions& options,
    const model::Loaded& loaded, const LayerReachOptions& reach, const WindowOptions& windows,
    torch::Device device, std::optional<torch::Dtype> dtype = torch::kFloat32);

}  // namespace infer
