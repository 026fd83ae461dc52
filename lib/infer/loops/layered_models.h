#pragma once
// Lists the architectures that LayeredEngine supports.

#include <optional>
#include <string>

#include "infer/loops/layered_engine.h"

namespace infer {

/// Returns the description of a float32 model on the CPU: mosaic without bounded memories, mosaic2,
/// gla, lstm, srupp, transformer-xl; otherwise nullopt. The model must outlive it, with unchanged
/// weights and layer reach.
std::optional<LayeredModel> layered_model(nn::Model& model, torch::Device device,
                                          Precision precision);

/// Returns a description without steps.
LayeredModel started(const nn::Model& model, Precision precision);
/// Returns the prefix of a layer's weights.
std::string layer_name(std::int64_t i);
/// Returns the feed-forward network LAYER.mlp.
std::unique_ptr<Part> feed_forward(LayeredModel& of, const std::string& layer,
                                   const nn::ModelOptions& options);

/// Descriptions of the architectures, each in the file of its name.
LayeredModel layered_gla(nn::Model& model, Precision precision);
LayeredModel layered_lstm(nn::Model& model, Precision precision);
LayeredModel layered_mosaic(nn::Model& model, Precision precision);
LayeredModel layered_mosaic2(nn::Model& model, Precision precision);
LayeredModel layered_srupp(nn::Model& model, Precision precision);
LayeredModel layered_transformer_xl(nn::Model& model, Precision precision);

}  // namespace infer
