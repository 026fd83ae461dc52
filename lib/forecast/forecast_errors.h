#pragma once
// Forecast errors of a vector model after contexts of every length.

#include <cstdint>
#include <vector>

#include "forecast/forecast_model.h"

namespace forecast {

struct Task {
  std::int64_t length = 800;  ///< number of rows in a sequence
  std::int64_t horizon = 25;  ///< number of forecast rows, each fed back as if observed
  std::int64_t every = 4;     ///< contexts of 1, 1 + every, ... rows
};

struct ContextError {
  std::int64_t context;
  double error;  ///< mean |forecast - truth| over horizon, coordinates and sequences
};

/// Returns the errors; `sequences` are (length, width) rows each.
std::vector<ContextError> errors_by_context(const Model& model,
                                            const std::vector<const float*>& sequences,
                                            const Task& task);

}  // namespace forecast
