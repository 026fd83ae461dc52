#include "forecast/forecast_model.h"

#include <vector>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "model/model_path.h"

namespace forecast {
namespace {

constexpr const char* kMaps[] = {"key", "value", "c_proj"};

}  // namespace

model::NamedTensors Model::named_weights() const {
  model::NamedTensors named;
  for (std::size_t map = 0; map < std::size(kMaps); ++map)
    named.emplace_back(kMaps[map], maps[static_cast<std::int64_t>(map)]);
  return named;
}

Model identity(const Shape& shape) {
  const auto eye = torch::eye(shape.points);
  const auto map = torch::stack({eye, torch::zeros_like(eye)}, -1);
  return {shape, torch::stack({map, map, map})};
}

core::OrderedJson make_config(const Shape& shape, core::OrderedJson training) {
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

void save(const std::string& folder, const Model& model, const core::OrderedJson& config) {
  core::make_folder(folder);
  core::write_file(folder + "/config.json", core::dump_pretty(config) + "\n");
  core::Output out(folder + "/model.safetensors");
  model::write_safetensors(out, model.named_weights());
  out.commit();
}

Model load(const std::string& given) {
  const std::string folder = model::model_folder(given);
  const auto path = folder + "/config.json";
  const auto config = core::read_json(path);
  const auto& tessera = config.contains("tessera") ? config["tessera"] : config;
  if (!tessera.is_object() || !tessera.contains("loss"))
    core::fail(core::Code::bad_config, "{}: not a model that forecasts vectors", folder);
  Model model;
  model.shape.points = core::get<std::int64_t>(tessera, "points", path);
  model.shape.heads = core::get<std::int64_t>(tessera, "heads", path);
  model.shape.beta = core::get<float>(tessera, "beta", path);
  const auto n = model.shape.points;
  if (n < 1 || n > kMostPoints || model.shape.heads < 1 || n % model.shape.heads != 0)
    core::fail(core::Code::bad_config, "{}: {} points and {} heads are inconsistent", path, n,
               model.shape.heads);
  const auto tensors = model::read_safetensors(folder + "/model.safetensors");
  std::vector<torch::Tensor> maps;
  for (const auto* const name : kMaps) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.scalar_type() != torch::kFloat32 ||
        found->second.sizes() != torch::IntArrayRef({n, n, 2}))
      core::fail(core::Code::bad_data, "{}/model.safetensors: no float32 {} of shape {}, {}, 2",
                 folder, name, n, n);
    maps.push_back(found->second);
  }
  model.maps = torch::stack(maps);
  return model;
}

}  // namespace forecast
