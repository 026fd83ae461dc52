#pragma once
// Result of a step, and its end: from gradients to new weights.
// Calls a function while a backward pass runs, as soon as it has added to a weight's gradient.
// Learning rate schedules.

#include "model/checkpoint.h"
#include "train/optimiser.h"

namespace train {

/// The learning rate of update `step` (the first is 0) of `steps`. Linear from warmup_init_lr at 0
/// to lr at the warm-up's end w; from there, with s = step - w:
///   cosine           min_lr + (lr - min_lr) (1 + cos(pi s / (steps - w))) / 2, and min_lr after it
///   cosine-restarts  the same over periods T_i = period * t_mult^i, both rates times lr_shrink^i
///   in period i
///                    (Loshchilov & Hutter 2017; the shrink is fairseq's)
///   inverse-sqrt     lr sqrt(w / step); w is at least 1 (Vaswani et al. 2017, section 5.3)
///   linear           from lr down to min_lr at the end
///   constant         lr
class Schedule {
 public:
  Schedule(const ScheduleOptions& options, double lr, std::int64_t steps);
  double at(std::int64_t step) const;

 private:
  double cosine(double done, double period, double scale) const;
  double restarts(double since) const;
  ScheduleOptions options_;
  double lr_, warmup_, period_;
};

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
