#pragma once
// How well a model of vectors goes on from contexts of every length.

#include <cstdint>
#include <vector>

#include "model/forecast_model.h"

namespace infer {

struct ForecastTask {
  std::int64_t length = 800;  ///< rows of a sequence
  std::int64_t horizon = 25;  ///< rows that are forecast, each fed back as if it had been seen
  std::int64_t every = 1;     ///< contexts of 1, 1 + every, ... rows
};

struct ForecastError {
  std::int64_t context;
  double error;  ///< mean |forecast - truth| over horizon, coordinates and sequences
};

/// `sequences` are (length, width) rows each.
std::vector<ForecastError> forecast_errors(const model::ForecastModel& model,
                                           const std::vector<const float*>& sequences,
                                           const ForecastTask& task);

}  // namespace infer
