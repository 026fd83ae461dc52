#pragma once
// Selects the decoding engine of a model.

#include <memory>

#include "infer/decode/decode_engine.h"

namespace infer {

/// Returns the fastest engine for the model: TransformerEngine or LayeredEngine on the CPU,
/// DeviceEngine on a device, ModuleEngine otherwise. `model` must outlive it, with unchanged
/// weights and layer reach. `record`: see nn::FixedSequence. Throws Error{unavailable} for a
/// precision that the model's own modules do not support.
std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
                                    bool record = true);

}  // namespace infer
