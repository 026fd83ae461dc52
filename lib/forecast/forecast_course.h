#pragma once
// Training of a contextual memory unit that forecasts vectors, by the clipped squared error (Zhang
// et al. 2024, section 3), with train's optimisers, schedules, checkpoints and loop.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/options.h"
#include "forecast/forecast_kernels.h"
#include "train/course.h"

namespace forecast {

struct Job {
  train::Recipe recipe;             ///< of the batches segment (rows), batch and accumulate
  Shape shape;                      ///< points come from the data
  std::set<std::string> given;      ///< options that were given, not left at their default
  std::vector<std::string> shards;  ///< vectors
  std::string from;                 ///< a model folder to start from, or empty
  std::string valid;                ///< a shard of vectors, or empty
  train::ValidationOptions validation;
  std::uint64_t seed = 1;
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
