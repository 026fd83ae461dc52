#pragma once
// Further models in a mixture: what each gives a word is its own softmax, after the same text as
// far as its windows go.

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

/// A model, in evaluation mode, and how it reads a text.
struct BesideModel {
  model::Loaded loaded;
  WindowOptions windows;
};

/// See WithOptions.
struct WithPlan {
  std::vector<WithShare> shares;
  std::vector<std::shared_ptr<const BesideModel>> models;  ///< of each share, once they are open

  bool any() const { return !shares.empty(); }
  double sum() const;  ///< of the shares
  /// The number of the one whose share a gate gives; -1: none.
  std::int64_t gated() const;
  /// log p of the models together, by their shares: (R) of (models, R).
  torch::Tensor mix(const torch::Tensor& log_prob) const;
};

/// The options as a model takes them: a window that is longer than its positions is cut to these,
/// and State is only carried where it can be.
WindowOptions windows_for(const model::Loaded& loaded, WindowOptions options);

/// Opens the models of `options` beside `loaded`, and sets how far layers look back in all of them:
/// before windows are planned. Throws Error{bad_data} naming both fingerprints for one with another
/// tokenizer, Error{usage} for one that reads a source where the other does not and for one whose
/// windows leave out other tokens (--protocol llama.cpp), and as model::load(), plan_windows() and
/// LayerReachOptions::apply() do.
std::vector<std::shared_ptr<const BesideModel>> open_beside(
    const MemoryOptions& options, const model::Loaded& loaded, const LayerReachOptions& reach,
    const WindowOptions& windows, torch::Device device,
    std::optional<torch::Dtype> dtype = torch::kFloat32);

/// Rows of log-probabilities (R, V) as those of a head of `words` words, in the form of `like`: a
/// word that the model has not has probability 0.
torch::Tensor with_rows(const torch::Tensor& log_probs, std::int64_t words,
                        const torch::Tensor& like);

}  // namespace infer
