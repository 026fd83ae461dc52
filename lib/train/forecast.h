#pragma once
// Training of a contextual memory unit that forecasts vectors, by the clipped squared error (Zhang
// et al. 2024, section 3).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/forecast_kernels.h"
#include "train/options.h"
#include "train/run_folder.h"

namespace train {

struct ForecastJob {
  Recipe recipe;  ///< steps, batch and segment (rows), AdamW, schedule; the rest has no effect
  nn::ForecastShape shape;          ///< points come from the data
  std::vector<std::string> shards;  ///< vectors; each document is a series of its own
  std::uint64_t seed = 1;
};

/// Mean of clip(forecast - next row, -0.5, 0.5)^2 over random windows of --segment rows. A run
/// takes a minute or two and keeps no checkpoints: one that was stopped begins anew, to the same
/// bytes. False if the folder held the finished run. Throws Error{usage}, Error{bad_data}.
bool train_forecast(const RunFolder& folder, ForecastJob job,
                    const std::function<void(std::int64_t step, double loss)>& progress);

}  // namespace train
