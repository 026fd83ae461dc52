#pragma once
// Which engine decodes a model.

#include <memory>

#include "infer/decode/decode_engine.h"

namespace infer {

/// The fastest that computes this model: on the CPU loops of its own (TransformerEngine,
/// LayeredEngine), on a device DeviceEngine where there is one for it, else ModuleEngine. `model`
/// must outlive it, its weights and how far its layers reach as they are. `record`: see
/// nn::FixedSequence. Throws Error{unavailable} for a precision that the model's own modules do not
/// have.
std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
                                    bool record = true);

}  // namespace infer
