#pragma once
// A model's weights in safetensors files: under the module's own names, or as a family of
// transformers' has them (model/families).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.h"
#include "model/model_config.h"
#include "model/safetensors.h"
#include "model/tensor_files.h"
#include "nn/arch/model.h"

namespace model {

/// The metadata key that holds the fingerprint of the model that was saved.
inline constexpr const char* kFingerprintKey = "tessera_fingerprint";

/// Is told of each thing that is wrong, as one line; it may throw.
using FaultFound = std::function<void(const std::string&)>;
/// Of who stops at the first: throws Error{bad_data}.
[[noreturn]] void refuse(const std::string& fault);

/// Where the weights of a model stand in its files. They are read one at a time, so that a model
/// larger than memory can be looked at. Thread safe.
class StoredWeights {
 public:
  /// Of a model of config.options, which is not made. All three outlive it. Throws
  /// Error{bad_config} if no model can be made of the options, Error{bad_data} where the files have
  /// fewer tensors than the model has layers.
  StoredWeights(const Config& config, const std::string& config_origin, const TensorFiles& files);

  std::size_t size() const { return weights_.size(); }
  /// In the order of nn::Model::named_weights().
  const std::string& name(std::size_t i) const { return weights_[i].name; }
  const std::vector<std::int64_t>& shape(std::size_t i) const { return weights_[i].shape; }
  std::int64_t parameter_count() const;
  /// What its numbers in the files are multiplied by.
  double factor(std::size_t i) const { return factor_of(config_.factors, weights_[i].name); }

  /// Tells of each tensor that is missing, superfluous, of a wrong shape or dtype.
  void check(const FaultFound& found) const;
  /// Whether check() has nothing to say of this one.
  bool fits(std::size_t i) const;
  /// Into a float32 tensor of its shape; a tensor of another type is in memory for as long as it is
  /// converted. Tells of each tensor of the files that holds a value that is not finite.
  void read_into(std::size_t i, const torch::Tensor& weight, const FaultFound& found) const;

 private:
  struct Weight {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<Piece> pieces;  ///< with the names in the files
  };
  void find_names();  // that a family's file has for them
  void find_names_of_part();
  std::string fault(const Weight& weight, const Piece& piece) const;  // empty: none
  void check_others(const FaultFound& found) const;

  const Config& config_;
  const TensorFiles& files_;
  std::vector<Weight> weights_;
};

/// The weights as a file of the family has them (null: their own names), views of the model's.
NamedTensors weights_to_write(const nn::Model& model, const Family* family);

class Adapter;  // adapter.h

/// A model and its fingerprint().
struct ReadModel {
  std::shared_ptr<nn::Model> model;
  core::Digest fingerprint;
  core::Digest stored;  ///< of the files' weights, without what an adapter changed
};

/// A model of config.options with the files' weights, on the CPU: as float32, changed as `adapter`
/// says (null: not), then as `dtype`.
/// Nothing is allocated before names and shapes agree; beside the model there is one weight at a
/// time. torch's generator stays as it is. Throws Error{bad_config} if no model can be made of the
/// options, Error{bad_data} naming the tensor that is missing, superfluous, of a wrong shape or
/// dtype, or not finite; and as Adapter::changes().
ReadModel read_model(const Config& config, const std::string& config_origin,
                     const TensorFiles& files, torch::Dtype dtype = torch::kFloat32,
                     const Adapter* adapter = nullptr);

/// The type in which all of the files' tensors stand, bfloat16; else float32.
torch::Dtype dtype_of(const TensorFiles& files);

/// The type that all weights have in the files, buffers aside: bfloat16 or float16; else float32.
torch::Dtype stored_type(const TensorFiles& files, const Family* family);

/// XXH3-128 of the options that matter (options_digest) and of the weights' names, shapes and
/// values as float32.
core::Digest fingerprint(const nn::Model& model);
/// The same of weights that fit, read one at a time. Tells of values that are not finite.
core::Digest fingerprint(const Config& config, const StoredWeights& weights,
                         const FaultFound& found);

}  // namespace model
