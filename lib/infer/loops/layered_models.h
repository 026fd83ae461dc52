#pragma once
// The architectures that LayeredEngine runs.

#include <optional>

#include "infer/loops/layered_engine.h"

namespace infer {

/// Of a model on the CPU in float32: mosaic without bounded memories, mosaic2, gla, lstm,
/// srupp, transformer-xl; else nothing. The model must outlive it; its weights and how far its
/// layers reach stay as they are.
std::optional<LayeredModel> layered_model(nn::Model& model, torch::Device device,
                                          Precision precision);

}  // namespace infer
