#pragma once
// Weights of a model in safetensors files: with the module's own names, or in the layout of a
// transformers family (model/families).

#include "model/model_config.h"
#include "model/tensor_files.h"
#include "nn/arch/model.h"

namespace model {

/// Metadata key of the saved model's fingerprint.
inline constexpr const char* kFingerprintKey = "tessera_fingerprint";

/// Callback that receives each fault as one line; it may throw.
using FaultFound = std::function<void(const std::string&)>;
/// FaultFound that stops at the first fault: throws Error{bad_data}.
[[noreturn]] void refuse(const std::string& fault);

/// Locations of a model's weights in its files. Weights are read one at a time, so that models
/// larger than memory can be inspected. Thread safe.
class StoredWeights {
 public:
  /// Locates the weights for config.options without creating the model. All arguments must outlive
  /// the object. Throws Error{bad_config} for impossible options, Error{bad_data} if the files have
  /// fewer tensors than the model has layers.
  StoredWeights(const Config& config, const std::string& config_origin, const TensorFiles& files);

  std::size_t size() const { return weights_.size(); }
  /// Weights are in the order of nn::Model::named_weights().
  const std::string& name(std::size_t i) const { return weights_[i].name; }
  const std::vector<std::int64_t>& shape(std::size_t i) const { return weights_[i].shape; }
  std::int64_t parameter_count() const;
  /// Returns the number of parameters that a token uses: counts only the experts that a
  /// token is routed to.
  std::int64_t active_parameter_count() const;
  /// Returns the factor applied to the numbers in the files.
  double factor(std::size_t i) const { return factor_of(config_.factors, weights_[i].name); }

  /// Reports each tensor that is missing, superfluous, or of a wrong shape or dtype.
  void check(const FaultFound& found) const;
  /// Returns whether check() reports no fault for this weight.
  bool fits(std::size_t i) const;
  /// Reads into a float32 tensor of its shape; a tensor of another type needs extra memory during
  /// the conversion. Reports each tensor of the files with a value that is not finite.
  void read_into(std::size_t i, const torch::Tensor& weight, const FaultFound& found) const;
  /// Returns whether the rows of a weight are consecutive rows of one tensor of the files.
  bool has_rows(std::size_t i) const;
  /// Does the same with rows [first, first + rows.size(0)). Requires has_rows().
  void read_rows_into(
      std::size_t i, std::int64_t first, const torch::Tensor& rows, const FaultFound& found) const;
  /// Maps a weight (map_tensor()). Undefined unless the file has its numbers as they are, in
  /// `dtype`.
  torch::Tensor map(std::size_t i, torch::Dtype dtype) const;
  /// Returns a weight in the blocks of a GGUF file, from its first row on; empty unless all its
  /// numbers are there as they are.
  std::vector<GgufRows> blocks(std::size_t i) const;

 private:
  struct Weight {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<Piece> pieces;  ///< with the names in the files
  };
  void find_names();  // names in a family's file
  void find_names_of_part();
  std::string fault(const Weight& weight, const Piece& piece) const;  // empty: none
  void check_others(const FaultFound& found) const;

  const Config& config_;
  const TensorFiles& files_;
  std::vector<Weight> weights_;
};

/// Returns the weights in the layout of the family's files (null: own names), as views of the
/// model's.
NamedTensors weights_to_write(const nn::Model& model, const Family* family);

class Adapter;  // adapter.h

/// Receives numbers of weights while a model is read, to keep them in another form. The model keeps
/// tensors of these shapes that share one NaN.
class WeightTaker {
 public:
  virtual ~WeightTaker() = default;
  /// Returns whether to take a weight of the model; `weight` is the model's parameter.
  virtual bool takes(const nn::Model& model, const torch::Tensor& weight) = 0;
  /// Receives rows [first, first + rows.size(0)) of a weight that takes() accepted: float32,
  /// contiguous, in order. The memory of `rows` is used again afterwards.
  virtual void take(const torch::Tensor& weight, std::int64_t first, const torch::Tensor& rows) = 0;
  /// Receives the blocks that hold a weight which takes() accepted. Returns whether they suffice:
  /// take() is then not called for it, and its numbers are not read.
  virtual bool take_blocks(const torch::Tensor& /*weight*/, const std::vector<GgufRows>& /*rows*/) {
    return false;
  }
  /// Receives the weights that takes() left in the model, before any weight is read.
  virtual void leaves(std::span<const torch::Tensor> /*weights*/) {}
};

/// A model and its fingerprint().
struct ReadModel {
  std::shared_ptr<nn::Model> model;
  core::Digest fingerprint;
  core::Digest stored;  ///< fingerprint of the files' weights, without the adapter's changes
  bool digested;  ///< false: WeightTaker::take_blocks() took some, and there are no fingerprints
};

/// Creates a model of config.options with the files' weights on the CPU: reads float32, applies
/// `adapter` (null: none), then converts to `dtype`. Checks names and shapes before it allocates;
/// needs memory for one weight beside the model. Tables of NgramMemory stay in their file if they
/// can (StoredWeights::map()), and are read there once. `taker` (null: none) receives a large
/// weight in parts of a few MiB, so that the float32 form of the model never exists as a whole.
/// Does not change torch's generator. Throws Error{bad_config} for impossible options;
/// Error{bad_data} that names a tensor which is missing, superfluous, of a wrong shape or dtype, or
/// not finite; and the errors of Adapter::changes().
ReadModel read_model(const Config& config, const std::string& config_origin,
    const TensorFiles& files, torch::Dtype dtype = torch::kFloat32,
    const Adapter* adapter = nullptr, WeightTaker* taker = nullptr);

/// Returns bfloat16 if all tensors of the files have this type; else float32.
torch::Dtype dtype_of(const TensorFiles& files);

/// Returns the type of all weights in the files, except buffers: bfloat16 or float16; else float32.
torch::Dtype stored_type(const TensorFiles& files, const Family* family);

/// Returns the XXH3-128 of the options that affect the function (options_digest) and of the
/// weights' names, shapes and values as float32.
core::Digest fingerprint(const nn::Model& model);
/// Computes the fingerprint of stored weights, read one at a time, in parts of a few MiB if the
/// files allow it. Reports values that are not finite.
core::Digest fingerprint(
    const Config& config, const StoredWeights& weights, const FaultFound& found);

}  // namespace model
