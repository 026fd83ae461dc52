#pragma once
// Folder of a model that forecasts vectors: config.json, and model.safetensors with the complex
// maps "key", "value" and "c_proj", (points, points, 2) as (re, im).
// Forecast errors of a vector model after contexts of every length.
// Shards of vectors in memory: each document is a series of observations.

#include "core/json.h"
#include "forecast/forecast_kernels.h"
#include "model/safetensors.h"

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
std::vector<ContextError> errors_by_context(
    const Model& model, const std::vector<const float*>& sequences, const Task& task);

struct Series {
  /// Rows [begin, end).
  struct Span {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  std::string name;             ///< of the data, for messages
  std::string fingerprint;      ///< hex
  std::int64_t width = 0;       ///< numbers of a row: points of the plane, x before y
  std::vector<float> numbers;   ///< (rows, width)
  std::vector<Span> documents;  ///< empty ones too

  const float* row(std::int64_t number) const { return numbers.data() + number * width; }
};

/// Throws Error{no_input}, Error{bad_data} if the shards hold no vectors, no documents of them, or
/// vectors that are no points of the plane, or more than kMostPoints.
Series read_series(const std::vector<std::string>& shards);

}  // namespace forecast
