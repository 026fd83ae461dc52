#pragma once
// Selects the decoding engine of a model.

#include <memory>
#include <optional>
#include <string>

#include "infer/decode/decode_engine.h"
#include "infer/decode/packed_model.h"
#include "model/folder.h"

namespace infer {

/// Returns the fastest engine for the model: TransformerEngine or LayeredEngine on the CPU,
/// DeviceEngine on a device, ModuleEngine otherwise. `model` must outlive it, with unchanged
/// weights and layer reach. `record`: see nn::FixedSequence. `packed` (null: none) has the matrices
/// that were taken from the model. Throws Error{unavailable} for a precision that the model's own
/// modules do not support.
std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
                                    bool record = true, const PackedModel* packed = nullptr);

/// Loads a model for decoding on the CPU or a device (see model::load()). Packs the weights of a
/// transformer on the CPU as they are read, unless `precision` is float32; make_engine() then needs
/// packed_in() of the result. `others`: type of the weights that are not packed; without it, the
/// files' type, bfloat16 or float32.
model::Loaded load_to_decode(const std::string& path, torch::Device device, Precision precision,
                             const std::string& adapter = {},
                             std::optional<torch::Dtype> others = std::nullopt);
/// Returns the weights that load_to_decode() packed; null: none.
const PackedModel* packed_in(const model::Loaded& loaded);
/// Reads the model again, with the weights that load_to_decode() packed, as float32. Throws
/// Error{bad_data} if the files have changed since, and the errors of model::load(). Other threads
/// may compute with the model meanwhile.
model::Loaded read_again(const model::Loaded& loaded);
/// Moves the weights that load_to_decode() packed from `again`, of read_again(), to the model, so
/// that its own modules compute too. The packed weights remain.
void take_packed_weights(const model::Loaded& loaded, const model::Loaded& again);

}  // namespace infer
