#pragma once
// Lists the architectures that LayeredEngine supports.

#include <optional>

#include "infer/loops/layered_engine.h"

namespace infer {

/// Returns the description of a float32 model on the CPU: mosaic without bounded memories, mosaic2,
/// gla, lstm, srupp, transformer-xl; otherwise nullopt. The model must outlive it, with unchanged
/// weights and layer reach.
std::optional<LayeredModel> layered_model(nn::Model& model, torch::Device device,
                                          Precision precision);

}  // namespace infer
