#pragma once
// Trains a contextual memory unit that forecasts vectors with the clipped squared error (Zhang et
// al. 2024, section 3), using train's optimisers, schedules, checkpoints and loop.

#include "train/objective.h"

namespace forecast {

/// Options of the loss.
struct LossOptions {
  std::string loss = "softmax";  ///< softmax: of tokens; clipped-mse: of vectors
  double beta = 0;  ///< for vectors: sharpness of the kernel; 0 (auto): 50, or the model's
  void fields(core::FieldList& f);

  bool of_vectors() const { return loss == "clipped-mse"; }
  /// Throws Error{usage} if `arch` does not support the loss, or if beta is given for tokens.
  void check(const std::string& arch) const;
};

/// Of the recipe's batch options only segment (rows), batch and accumulate apply; of the model's
/// only heads. The data give the number of points.
struct Job : train::Job {
  double beta = 0;  ///< see LossOptions
};

/// Creates the objective. The loss is the mean over rows and their numbers of clip(forecast - next
/// row, -0.5, 0.5)^2. Training uses windows of --segment rows, each from a random row of a random
/// document; validation uses all consecutive rows of each document. Throws the errors of opening,
/// reading and checking: Error{no_input}, Error{bad_data}, Error{bad_config}, Error{usage}.
std::unique_ptr<train::Objective> prepare(Job job);

/// Throws Error{usage} that names the first option of train which has no meaning here and differs
/// from its default. `fields` are the values; `defaults` is an untouched list of the same fields.
void refuse_meaningless(const core::FieldList& fields, const core::FieldList& defaults);

}  // namespace forecast
