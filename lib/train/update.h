#pragma once
// Result of a step, and its end: from gradients to new weights.
// Calls a function while a backward pass runs, as soon as it has added to a weight's gradient.

#include "model/checkpoint.h"
#include "train/optimiser.h"

namespace train {

/// Tensors remain on the model's device; reading them is the only synchronisation.
struct Update {
  torch::Tensor loss;       ///< float64 scalar: sum over the scored units
  torch::Tensor norm;       ///< float64 scalar: norm of the mean loss's gradient, before clipping
  std::int64_t scored = 0;  ///< tokens, or rows of vectors
  double lr = 0;
};

/// Completes step `step` (0, 1, ...), for which the weights hold the gradients of update.loss:
/// divides them by update.scored, clips the norm to `clip` (0: no clipping), and runs the optimiser
/// with update.lr. Sets update.norm. Throws Error{bad_data} if the gradient is not finite; on a
/// device, where this would need a synchronisation, the caller checks update.norm. `norm`: that of
/// the gradients of update.loss, undefined: of the optimiser's weights.
void descend(
    Update& update, Optimiser& optimiser, double clip, std::int64_t step, torch::Tensor norm = {});

/// Save and restore moments and numbers as "optimiser..." of the checkpoint. get_optimiser throws
/// Error{bad_data} that names a missing or inconsistent item.
void put_optimiser(model::Checkpoint& checkpoint, const Optimiser& optimiser);
void get_optimiser(const model::Checkpoint& checkpoint, Optimiser& optimiser);

/// The hooks of some weights, while the object exists. A weight has at most one hook.
class GradientHooks {
 public:
  /// `arrived` gets the index of a weight, in the thread of the backward pass. Weights that need no
  /// gradient have no hook. `weights` outlive the object.
  GradientHooks(const NamedWeights& weights, const std::function<void(std::size_t)>& arrived);
  ~GradientHooks();
  GradientHooks(GradientHooks&&) = delete;

 private:
  const NamedWeights& weights_;
};

}  // namespace train
