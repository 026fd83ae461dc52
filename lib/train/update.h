#pragma once
// What an update was like, and its end: from gradients to new weights.

#include <cstdint>

#include "model/checkpoint.h"
#include "nn/base/torch.h"
#include "train/optimiser.h"

namespace train {

/// Tensors stay on the model's device, so that asking for them is the only synchronisation.
struct Update {
  torch::Tensor loss;       ///< float64 scalar: sum over what was scored
  torch::Tensor norm;       ///< float64 scalar: of the gradient of the mean loss, before clipping
  std::int64_t scored = 0;  ///< tokens, or rows of vectors
  double lr = 0;
};

/// Update `step` (0, 1, ...), whose weights hold the gradients of update.loss: of the mean over
/// update.scored, clipped to a norm of `clip` (0: not), the optimiser makes new weights with
/// update.lr. Fills update.norm. Throws Error{bad_data} if the gradient is not finite; on a device,
/// which would have to be waited for, that is left to who looks at update.norm.
void descend(Update& update, Optimiser& optimiser, double clip, std::int64_t step);

/// Its moments and numbers, as "optimiser..." of the checkpoint. get throws Error{bad_data} naming
/// what is missing or does not fit.
void put_optimiser(model::Checkpoint& checkpoint, const Optimiser& optimiser);
void get_optimiser(const model::Checkpoint& checkpoint, Optimiser& optimiser);

}  // namespace train
