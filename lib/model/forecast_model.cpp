#include "model/forecast_model.h"

#include <cstring>

#include "core/error.h"
#include "core/io.h"
#include "model/safetensors.h"

namespace model {
namespace {

constexpr const char* kMaps[] = {"key", "value", "c_proj"};
constexpr std::int64_t kMostPoints = 32;

std::size_t map_size(const nn::ForecastShape& shape) {
  return static_cast<std::size_t>(2 * shape.points * shape.points);
}

}  // namespace

ForecastModel identity_forecast(const nn::ForecastShape& shape) {
  ForecastModel model{shape, std::vector<float>(3 * map_size(shape), 0.0f)};
  for (std::size_t map = 0; map < 3; ++map)
    for (std::int64_t i = 0; i < shape.points; ++i)
      model.weights[map * map_size(shape) + static_cast<std::size_t>(2 * (i * shape.points + i))] =
          1;
  return model;
}

core::OrderedJson forecast_config(const nn::ForecastShape& shape, core::OrderedJson training) {
  core::OrderedJson tessera;
  tessera["arch"] = "mosaic";
  tessera["loss"] = "clipped-mse";
  tessera["maps"] = "complex";
  tessera["points"] = shape.points;
  tessera["heads"] = shape.heads;
  tessera["beta"] = shape.beta;
  tessera["training"] = std::move(training);
  core::OrderedJson config;
  config["tessera"] = std::move(tessera);
  return config;
}

void save_forecast(const std::string& folder, const ForecastModel& model,
                   const core::OrderedJson& config) {
  core::write_file(folder + "/config.json", core::dump_pretty(config) + "\n");
  NamedTensors tensors;
  const auto n = model.shape.points;
  for (std::size_t map = 0; map < 3; ++map) {
    auto tensor = torch::empty({n, n, 2});
    std::memcpy(tensor.data_ptr<float>(), model.weights.data() + map * map_size(model.shape),
                tensor.nbytes());
    tensors.emplace_back(kMaps[map], tensor);
  }
  core::Output out(folder + "/model.safetensors");
  write_safetensors(out, tensors);
  out.commit();
}

ForecastModel load_forecast(const std::string& folder) {
  const auto path = folder + "/config.json";
  const auto config = core::parse_json(core::read_text(path), path);
  const auto& tessera = config.contains("tessera") ? config["tessera"] : config;
  if (!tessera.is_object() || !tessera.contains("loss"))
    core::fail(core::Code::bad_config, "{}: not a model that forecasts vectors", folder);
  ForecastModel model;
  model.shape.points = core::get<std::int64_t>(tessera, "points", path);
  model.shape.heads = core::get<std::int64_t>(tessera, "heads", path);
  model.shape.beta = core::get<float>(tessera, "beta", path);
  const auto n = model.shape.points;
  if (n < 1 || n > kMostPoints || model.shape.heads < 1 || n % model.shape.heads != 0)
    core::fail(core::Code::bad_config, "{}: {} points and {} heads do not go together", path, n,
               model.shape.heads);
  const auto tensors = read_safetensors(folder + "/model.safetensors");
  for (const auto* const name : kMaps) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.scalar_type() != torch::kFloat32 ||
        found->second.sizes() != torch::IntArrayRef({n, n, 2}))
      core::fail(core::Code::bad_data, "{}/model.safetensors: no float32 {} of shape {}, {}, 2",
                 folder, name, n, n);
    const auto* const data = found->second.const_data_ptr<float>();
    model.weights.insert(model.weights.end(), data, data + found->second.numel());
  }
  return model;
}

}  // namespace model
