#pragma once
// Further models in a mixture. Each contributes its softmax, given the text within its own windows.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "infer/sources/with_options.h"
#include "infer/windows/layer_reach.h"
#include "infer/windows/window_options.h"
#include "model/folder.h"
#include "nn/base/torch.h"

namespace infer {

struct MemoryOptions;

/// A model in evaluation mode and its window options.
struct BesideModel {
  model::Loaded loaded;
  WindowOptions windows;
};

/// Resolved WithOptions.
struct WithPlan {
  std::vector<WithShare> shares;
  std::vector<std::shared_ptr<const BesideModel>> models;  ///< one for each share, after opening

  bool any() const { return !shares.empty(); }
  double sum() const;  ///< sum of the weights
  /// Returns the index of the model with a gate; -1: none.
  std::int64_t gated() const;
  /// Returns log p of the weighted models together: (R) from (models, R).
  torch::Tensor mix(const torch::Tensor& log_prob) const;
};

/// Adapts the options to a model: limits the window to the model's positions, and carries State
/// only if the model supports it.
WindowOptions windows_for(const model::Loaded& loaded, WindowOptions options);

/// Opens the models of `options` beside `loaded` and sets the reach of layers in all of them; call
/// it before windows are planned. Throws Error{bad_data} with both fingerprints for a different
/// tokenizer. Throws Error{usage} if only one of two models reads a source, and for windows that
/// score other tokens (--protocol llama.cpp). Also throws the errors of model::load(),
/// plan_windows() and LayerReachOptions::apply().
std::vector<std::shared_ptr<const BesideModel>> open_beside(
    const MemoryOptions& options, const model::Loaded& loaded, const LayerReachOptions& reach,
    const WindowOptions& windows, torch::Device device,
    std::optional<torch::Dtype> dtype = torch::kFloat32);

/// Converts log-probabilities (R, V) to a head of `words` tokens, with the type and device of
/// `like`; tokens outside the model's vocabulary get probability 0.
torch::Tensor with_rows(const torch::Tensor& log_probs, std::int64_t words,
                        const torch::Tensor& like);

}  // namespace infer
