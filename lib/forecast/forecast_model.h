#pragma once
// Folder of a model that forecasts vectors: config.json, and model.safetensors with the complex
// maps "key", "value" and "c_proj", (points, points, 2) as (re, im).

#include <string>

#include "core/json.h"
#include "forecast/forecast_kernels.h"
#include "model/safetensors.h"
#include "nn/base/torch.h"

namespace forecast {

struct Model {
  Shape shape;
  torch::Tensor maps;  ///< (3, points, points, 2) float32, contiguous: the weights of MemoryUnit

  /// Returns views of the maps.
  model::NamedTensors named_weights() const;
};

/// Returns a model whose maps are the identity: each head smooths over the points themselves.
Model identity(const Shape& shape);

/// Returns the config.json of a model; `training` becomes "tessera"."training".
core::OrderedJson make_config(const Shape& shape, core::OrderedJson training);

/// Writes config.json, then model.safetensors. Throws Error{cannot_create}, Error{io}.
void save(const std::string& folder, const Model& model, const core::OrderedJson& config);

/// Loads a model. Throws Error{no_input} if there is none, Error{bad_config} for another kind of
/// model, Error{bad_data} if the tensors contradict the shape.
Model load(const std::string& folder);

}  // namespace forecast
