#pragma once
// A model's weights in safetensors files: under the module's own names, or as a family of
// transformers' has them (model/families).

#include <memory>
#include <string>

#include "core/hash.h"
#include "model/model_config.h"
#include "model/safetensors.h"
#include "model/tensor_files.h"
#include "nn/arch/model.h"

namespace model {

/// The metadata key that holds the fingerprint of the model that was saved.
inline constexpr const char* kFingerprintKey = "tessera_fingerprint";

/// The weights as a file of the family has them (null: their own names), views of the model's.
NamedTensors weights_to_write(const nn::Model& model, const Family* family);

/// A model and its fingerprint().
struct ReadModel {
  std::shared_ptr<nn::Model> model;
  core::Digest fingerprint;
};

/// A model of config.options with the files' weights, on the CPU: as float32, then as `dtype`.
/// Nothing is allocated before names and shapes agree; beside the model there is one weight at a
/// time. torch's generator stays as it is. Throws Error{bad_config} if no model can be made of the
/// options, Error{bad_data} naming the tensor that is missing, superfluous, of a wrong shape or
/// dtype, or not finite.
ReadModel read_model(const Config& config, const std::string& config_origin,
                     const TensorFiles& files, torch::Dtype dtype = torch::kFloat32);

/// The type in which all of the files' tensors stand, bfloat16; else float32.
torch::Dtype dtype_of(const TensorFiles& files);

/// XXH3-128 of the options that matter (options_digest) and of the weights' names, shapes and
/// values as float32.
core::Digest fingerprint(const nn::Model& model);

}  // namespace model
