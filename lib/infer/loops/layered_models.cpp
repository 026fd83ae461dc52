// The parts of each architecture. To add one, add a line to kLayered and its function.

#include "infer/loops/layered_models.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "infer/loops/delta_part.h"
#include "infer/loops/feed_forward_part.h"
#include "infer/loops/gla_part.h"
#include "infer/loops/lstm_part.h"
#include "infer/loops/mosaic2_part.h"
#include "infer/loops/mosaic_parts.h"
#include "infer/loops/relative_part.h"
#include "infer/loops/srupp_part.h"
#include "nn/arch/mosaic.h"
#include "nn/arch/mosaic2.h"
#include "nn/arch/srupp.h"
#include "nn/arch/transformer_xl.h"

namespace infer {
namespace {

LayeredModel started(const nn::Model& model, Precision precision) {
  LayeredModel out{DecodeWeights(*model.architecture, precision), model.architecture->d_key()};
  out.key_is_output = model.options.shape.memory_key == "output";
  return out;
}

std::string layer_name(std::int64_t i) { return "h." + std::to_string(i); }

std::unique_ptr<Part> feed_forward(const LayeredModel& of, const std::string& layer,
                                   const nn::ModelOptions& options) {
  return std::make_unique<FeedForwardPart>(of.weights, layer + ".mlp", options.shape.d_model,
                                           options.shape.ffn_width(),
                                           nn::parse_activation(options.transformer.activation));
}

LayeredModel mosaic(nn::Model& model, Precision precision) {
  constexpr double kEpsilon = nn::Mosaic::kNormEpsilon;
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto d = shape.d_model;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    const auto slots =
        model.architecture->named_parameters()[name + ".persistent.memory_keys"].size(1);
    out.steps.push_back(
        {out.weights.norm(name + ".ln_1", d, kEpsilon),
         std::make_unique<ContextualPart>(out.weights, name + ".contextual", d, shape.heads)});
    out.steps.push_back({out.weights.norm(name + ".ln_2", d, kEpsilon),
                         std::make_unique<PersistentPart>(out.weights, name + ".persistent", d,
                                                          shape.heads, slots)});
  }
  out.steps.back().gives_keys = !out.key_is_output;
  out.final_norm = out.weights.norm("ln_f", d, kEpsilon);
  if (model.options.mosaic.scale_output)
    out.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  return out;
}

std::unique_ptr<Part> gla_mixer(LayeredModel& of, const std::string& layer,
                                const nn::ModelOptions& options) {
  const auto d = options.shape.d_model, heads = options.shape.heads;
  const auto epsilon = options.transformer.norm_epsilon;
  if (options.gla.update == "delta")
    return std::make_unique<DeltaPart>(of.weights, layer + ".mixer", d, heads,
                                       options.gla.convolution, epsilon);
  return std::make_unique<GlaPart>(of.weights, layer + ".mixer", d, heads, options.gla.decay,
                                   epsilon);
}

LayeredModel gla(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto d = shape.d_model;
  const auto epsilon = model.options.transformer.norm_epsilon;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    out.steps.push_back(
        {out.weights.norm(name + ".ln_1", d, epsilon), gla_mixer(out, name, model.options)});
    out.steps.push_back(
        {out.weights.norm(name + ".ln_2", d, epsilon), feed_forward(out, name, model.options)});
  }
  out.steps.back().gives_keys = !out.key_is_output;
  out.final_norm = out.weights.norm("ln_f", d, epsilon);
  return out;
}

LayeredModel lstm(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  out.residual = false;
  out.key_is_output = true;
  const auto& shape = model.options.shape;
  const auto d = shape.d_model,
             width = model.options.lstm.d_recurrent > 0 ? model.options.lstm.d_recurrent : d;
  for (std::int64_t i = 0; i < shape.layers; ++i)
    out.steps.push_back(
        {{}, std::make_unique<LstmPart>(out.weights, i, i == 0 ? d : width, width)});
  if (width != d)
    out.steps.push_back(
        {{}, std::make_unique<AffinePart>(out.weights.affine("projection", d, width))});
  return out;
}

LayeredModel srupp(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  out.residual = false;
  const auto& of = dynamic_cast<const nn::Srupp&>(*model.architecture);
  for (std::int64_t i = 0; i < model.options.shape.layers; ++i)
    out.steps.push_back(
        {{},
         std::make_unique<SruppPart>(out.weights, layer_name(i), model.options, of.width(),
                                     LayerPast{of.lengths().at(i), of.same_length()})});
  out.steps.back().gives_keys = !out.key_is_output;
  return out;
}

LayeredModel transformer_xl(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto& options = model.options.transformer;
  const auto& of = dynamic_cast<const nn::TransformerXl&>(*model.architecture);
  const auto d = shape.d_model;
  const bool pre = options.norm == "pre";
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    const auto norm = [&](const char* which, bool before) {
      return pre == before ? std::optional(out.weights.norm(name + which, d, options.norm_epsilon))
                           : std::nullopt;
    };
    const auto biases = model.options.transformer_xl.shared_biases ? "biases" : name + ".biases";
    const LayerPast past{of.lengths().at(i), of.same_length()};
    out.steps.push_back({norm(".ln_1", true),
                         std::make_unique<RelativePart>(out.weights, name + ".attn", biases, d,
                                                        shape.heads, past, of.clamp_length()),
                         norm(".ln_1", false)});
    out.steps.push_back(
        {norm(".ln_2", true), feed_forward(out, name, model.options), norm(".ln_2", false)});
  }
  out.steps.back().gives_keys = !out.key_is_output;
  if (options.final_norm && pre) out.final_norm = out.weights.norm("ln_f", d, options.norm_epsilon);
  return out;
}

LayeredModel mosaic2(nn::Model& model, Precision precision) {
  constexpr double kEpsilon = nn::Mosaic2::kNormEpsilon;
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto& options = model.options.mosaic2;
  const auto d = shape.d_model;
  const auto norm = [&](const std::string& name) {
    auto made = out.weights.norm(name, d, kEpsilon);
    made.rms = true;
    return made;
  };
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    out.steps.push_back(
        {norm(name + ".ln_1"), std::make_unique<Mosaic2Part>(out.weights, name, d, shape.heads,
                                                             nn::PairReach{1, options.short_term},
                                                             nn::PairReach{options.delay, 0})});
    out.steps.push_back({norm(name + ".ln_2"), std::make_unique<FeedForwardPart>(
                                                   out.weights, name + ".mlp", d, shape.ffn_width(),
                                                   nn::Activation::silu, /*gated=*/true)});
  }
  out.steps.back().gives_keys = !out.key_is_output;
  out.final_norm = norm("ln_f");
  return out;
}

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
    {"gla", gla, always},          {"lstm", lstm, always},
    {"mosaic", mosaic, unbounded}, {"mosaic2", mosaic2, always},
    {"srupp", srupp, always},      {"transformer-xl", transformer_xl, always},
};

}  // namespace

std::optional<LayeredModel> layered_model(nn::Model& model, torch::Device device,
                                          Precision precision) {
  if (!device.is_cpu() || !model.options.plain_layers()) return std::nullopt;
  for (const auto& [name, weight] : model.named_weights())
    if (weight.scalar_type() != torch::kFloat32 || !weight.is_contiguous()) return std::nullopt;
  for (const auto& layered : kLayered)
    if (model.options.arch == layered.arch && layered.fits(model))
      return layered.make(model, precision);
  return std::nullopt;
}

}  // namespace infer
