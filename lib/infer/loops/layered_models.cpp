// The registry of LayeredEngine. To add an architecture, write a file layered_NAME.cpp with its
// parts and add a line to kLayered.

#include "infer/loops/layered_models.h"

#include "infer/loops/feed_forward_part.h"
#include "nn/arch/mosaic.h"

namespace infer {

LayeredModel started(const nn::Model& model, Precision precision) {
  LayeredModel out{DecodeWeights(*model.architecture, precision), model.architecture->d_key()};
  out.key_is_output = model.options.shape.memory_key == "output";
  return out;
}

std::string layer_name(std::int64_t i) { return "h." + std::to_string(i); }

std::unique_ptr<Part> feed_forward(LayeredModel& of, const std::string& layer,
                                   const nn::ModelOptions& options) {
  return std::make_unique<FeedForwardPart>(of.weights, layer + ".mlp", options.shape.d_model,
                                           options.shape.ffn_width(),
                                           nn::parse_activation(options.transformer.activation));
}

namespace {

bool always(const nn::Model&) { return true; }

bool unbounded(const nn::Model& model) {
  return dynamic_cast<const nn::Mosaic&>(*model.architecture).bound().slots == 0;
}

struct Layered {
  const char* arch;
  LayeredModel (*make)(nn::Model& model, Precision precision);
  bool (*fits)(const nn::Model& model);
};

constexpr Layered kLayered[] = {
    {"gla", layered_gla, always},          {"lstm", layered_lstm, always},
    {"mosaic", layered_mosaic, unbounded}, {"mosaic2", layered_mosaic2, always},
    {"srupp", layered_srupp, always},      {"transformer-xl", layered_transformer_xl, always},
};

}  // namespace

std::optional<LayeredModel> layered_model(nn::Model& model, torch::Device device,
                                          Precision precision) {
  if (!device.is_cpu() || !model.options.plain_layers()) return std::nullopt;
  for (const auto& [name, weight] : model.named_weights())
    if (weight.scalar_type() != torch::kFloat32 || !weight.is_contiguous()) return std::nullopt;
  for (const auto& layered : kLayered) {
    if (model.options.arch != layered.arch || !layered.fits(model)) continue;
    auto made = layered.make(model, precision);
    made.steps.back().gives_keys = !made.key_is_output;
    return made;
  }
  return std::nullopt;
}

}  // namespace infer
