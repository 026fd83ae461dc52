#include "forecast/forecast_model.h"

#include "core/file_text.h"
#include "model/model_path.h"
#include "shard/dataset.h"

namespace forecast {
namespace {

constexpr const char* kMaps[] = {"key", "value", "c_proj"};

/// Returns the sums of |error| of one sequence, one for each context.
std::vector<double> errors_of(
    MemoryUnit& unit, const Model& model, const float* x, const Task& task) {
  const auto width = model.shape.width();
  const float* const weights = model.maps.const_data_ptr<float>();
  std::vector<double> errors;
  std::vector<float> guess(static_cast<std::size_t>(width));
  std::int64_t known = 0;  // rows with observed keys and values
  for (std::int64_t context = 1; context + task.horizon <= task.length; context += task.every) {
    for (std::int64_t t = known; t < context; ++t) {
      unit.set_key(t, x + t * width, weights);
      if (t > 0) unit.set_value(t - 1, x + t * width, weights);
    }
    known = context;
    double sum = 0;
    for (std::int64_t t = context - 1; t < context - 1 + task.horizon; ++t) {
      unit.forecast(t, weights, guess.data());
      const float* const truth = x + (t + 1) * width;
      for (std::int64_t c = 0; c < width; ++c)
        sum += std::abs(static_cast<double>(guess[static_cast<std::size_t>(c)]) - truth[c]);
      unit.set_value(t, guess.data(), weights);
      unit.set_key(t + 1, guess.data(), weights);
    }
    // The last known row has the value of a forecast. The next context replaces it.
    errors.push_back(sum);
  }
  return errors;
}

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
  core::OrderedJson tessera{{"arch", "mosaic"}, {"loss", "clipped-mse"}, {"maps", "complex"},
      {"points", shape.points}, {"heads", shape.heads}, {"beta", shape.beta},
      {"training", std::move(training)}};
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
    core::bad_config("{}: not a model that forecasts vectors", folder);
  Model model;
  model.shape.points = core::get<std::int64_t>(tessera, "points", path);
  model.shape.heads = core::get<std::int64_t>(tessera, "heads", path);
  model.shape.beta = core::get<float>(tessera, "beta", path);
  const auto n = model.shape.points;
  if (n < 1 || n > kMostPoints || model.shape.heads < 1 || n % model.shape.heads != 0)
    core::bad_config("{}: \"points\" is {}; allowed: multiples of \"heads\", {}, up to {}", path, n,
        model.shape.heads, kMostPoints);
  const auto tensors = model::read_safetensors(folder + "/model.safetensors");
  std::vector<torch::Tensor> maps;
  for (const auto* const name : kMaps) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.scalar_type() != torch::kFloat32 ||
        found->second.sizes() != torch::IntArrayRef({n, n, 2}))
      core::bad_data("{}/model.safetensors: no float32 {} of shape {}, {}, 2", folder, name, n, n);
    maps.push_back(found->second);
  }
  model.maps = torch::stack(maps);
  return model;
}

std::vector<ContextError> errors_by_context(
    const Model& model, const std::vector<const float*>& sequences, const Task& task) {
  std::vector<std::vector<double>> sums(sequences.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(sequences.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        MemoryUnit unit(model.shape, task.length + 1);
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          sums[i] = errors_of(unit, model, sequences[i], task);
      });
  std::vector<ContextError> errors;
  const double terms = static_cast<double>(sequences.size()) *
                       static_cast<double>(task.horizon * model.shape.width());
  for (std::size_t i = 0; !sums.empty() && i < sums[0].size(); ++i) {
    double total = 0;
    for (const auto& sum : sums) total += sum[i];
    errors.push_back({1 + static_cast<std::int64_t>(i) * task.every, total / terms});
  }
  return errors;
}

Series read_series(const std::vector<std::string>& shards) {
  const shard::Dataset data(shards);
  shard::expect_kind(data.header(), {shard::Kind::vectors}, data.name());
  Series series;
  series.name = data.name();
  series.fingerprint = data.fingerprint().hex();
  series.width = static_cast<std::int64_t>(data.header().width);
  if (series.width % 2 != 0 || series.width > 2 * kMostPoints)
    core::bad_data("{}: rows of {} numbers cannot be points in the plane; they need an even number",
        series.name, series.width);
  series.numbers.resize(data.size());
  data.read(0, std::span<float>(series.numbers));
  std::int64_t begin = 0;
  for (const auto element : data.documents().end) {
    const auto end = static_cast<std::int64_t>(element) / series.width;
    series.documents.push_back({begin, end});
    begin = end;
  }
  if (series.documents.empty()) core::bad_data("{}: has no rows", series.name);
  return series;
}

}  // namespace forecast
