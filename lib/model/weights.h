#pragma once
// A model's weights in a safetensors file: under the module's own names, or as GPT-2's
// (model/gpt2.h).

#include <memory>
#include <string>

#include "core/hash.h"
#include "model/model_config.h"
#include "model/safetensors.h"
#include "nn/arch/model.h"

namespace model {

/// The metadata key that holds the fingerprint of the model that was saved.
inline constexpr const char* kFingerprintKey = "tessera_fingerprint";

/// The weights as a file has them, with views where the layout differs.
NamedTensors weights_to_write(const nn::Model& model, bool gpt2_layout);

/// A model of config.options with the file's weights, float32, on the CPU. Nothing is allocated
/// before names and shapes agree; torch's generator stays as it is. Throws Error{bad_config} if no
/// model can be made of the options, Error{bad_data} naming the tensor that is missing,
/// superfluous, of a wrong shape or dtype, or not finite.
std::shared_ptr<nn::Model> read_model(const Config& config, const std::string& config_origin,
                                      const SafetensorsReader& reader);

/// XXH3-128 of the options that matter (options_digest) and of the weights' names, shapes and
/// values as float32.
core::Digest fingerprint(const nn::Model& model);

}  // namespace model
