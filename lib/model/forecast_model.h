#pragma once
// The folder of a model that forecasts vectors: config.json, model.safetensors with the complex
// maps "key", "value" and "c_proj", (points, points, 2) as (re, im).

#include <string>
#include <vector>

#include "core/json.h"
#include "nn/forecast_kernels.h"

namespace model {

struct ForecastModel {
  nn::ForecastShape shape;
  std::vector<float> weights;  ///< of nn::ForecastUnit
};

/// The maps of the identity: each head smooths over the points themselves.
ForecastModel identity_forecast(const nn::ForecastShape& shape);

/// config.json of such a model; `training` stands in "tessera"."training".
core::OrderedJson forecast_config(const nn::ForecastShape& shape, core::OrderedJson training);

/// Writes config.json, then model.safetensors. Throws Error{cannot_create}, Error{io}.
void save_forecast(const std::string& folder, const ForecastModel& model,
                   const core::OrderedJson& config);

/// Throws Error{no_input} where there is none, Error{bad_config} if it is another kind of model,
/// Error{bad_data} if its tensors are not those of its shape.
ForecastModel load_forecast(const std::string& folder);

}  // namespace model
