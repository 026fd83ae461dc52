#pragma once
// Training of a contextual memory unit that forecasts vectors, by the clipped squared error (Zhang
// et al. 2024, section 3), with train's optimisers, schedules, checkpoints and loop.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "forecast/forecast_kernels.h"
#include "train/course.h"

namespace forecast {

/// What the loss of a run is.
struct LossOptions {
  std::string loss = "softmax";  ///< of tokens; clipped-mse: of vectors
  double beta = 50;              ///< of vectors: sharpness of the kernel
  void fields(core::FieldList& f);

  bool of_vectors() const { return loss == "clipped-mse"; }
  /// Throws Error{usage} if `arch` has no such loss, or for a beta of tokens.
  void check(const std::string& arch) const;
};

/// Of the recipe's batches segment (rows), batch and accumulate count; of the model its heads. The
/// points come from the data.
struct Job : train::Job {
  double beta = 50;
};

/// The loss is the mean over rows and their numbers of clip(forecast - next row, -0.5, 0.5)^2: in
/// training over windows of --segment rows, each from a random row of a random document; of
/// validation over all of them that follow one another in each document. Throws what opening,
/// reading and checking throw: Error{no_input}, Error{bad_data}, Error{bad_config}, Error{usage}.
std::unique_ptr<train::Course> prepare(Job job);

/// Throws Error{usage} naming the first of train's flags that was given another value than its
/// default and means nothing here. `fields`: as they are; `defaults`: the same list, untouched.
void refuse_meaningless(const core::FieldList& fields, const core::FieldList& defaults);

}  // namespace forecast
