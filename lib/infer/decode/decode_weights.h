#pragma once
// Finds an architecture's weights by name and packs them for decoding.
// Packs a model's weights while they are read, so that their float32 form never exists as a whole.
// Float32 weights, which are not packed, are put into huge pages.
// A plain softmax with packed weights, for decoding.

#include "infer/decode/decode_kernels.h"
#include "model/weights.h"

namespace infer {

class PackedModel;

/// A thread's range [begin(n), end(n)) of n items.
struct TeamShare {
  std::int64_t thread, threads;
  std::int64_t begin(std::int64_t n) const { return n * thread / threads; }
  std::int64_t end(std::int64_t n) const { return n * (thread + 1) / threads; }
};

/// An affine map y = matrix x + bias.
struct Affine {
  PackedMatrix matrix;
  const float* bias = nullptr;  ///< null: none
  bool halves = false;          ///< rounds x: PackedMatrix::multiply_halves()

  /// Outputs [first, last) that a thread computes for `rows` rows of x, which has row stride ldx
  /// and is zero-padded to the matrix's padded_in().
  struct Range {
    std::int64_t first, last;
  };
  Range range(TeamShare share) const;
  void multiply(const float* x, std::int64_t rows, std::int64_t ldx, TeamShare share, float* y,
      std::int64_t ldy) const;
};

/// Layer norm or RMS norm.
struct LayerNormed {
  const float *weight = nullptr, *bias = nullptr;  ///< bias null: none
  std::int64_t width = 0;
  float epsilon = 0;
  bool rms = false;
  void operator()(const float* x, float* y) const {
    (rms ? rms_norm : layer_norm)(x, weight, bias, width, epsilon, y);
  }
};

/// Packs `rows` rows from `first` on of a weight (out, in), float32 or bfloat16, contiguous, on the
/// CPU. References the weight if its type and layout permit; the weight must then outlive the
/// result.
PackedMatrix pack(
    const torch::Tensor& weight, std::int64_t first, std::int64_t rows, Precision precision);

/// Parameters of a map or of a norm; the bias is undefined if there is none.
struct WeightAndBias {
  torch::Tensor weight, bias;
};

/// Weights of a module. Returned objects point to the module's weights or into this object; both
/// must outlive them. Member functions throw Error{bug} for a weight that is missing or has another
/// shape.
class DecodeWeights {
 public:
  /// Weights are float32 or bfloat16, contiguous and on the CPU. `packed` (null: none) has the
  /// matrices that were taken from the model; the object uses it as long as it makes maps.
  /// `halves`: see Affine.
  DecodeWeights(const torch::nn::Module& module, Precision precision,
      const PackedModel* packed = nullptr, bool halves = false);

  torch::Tensor tensor(const std::string& name, torch::IntArrayRef sizes) const;
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  const float* vector(const std::string& name, std::int64_t size) {
    return kept(tensor(name, {size}));
  }
  WeightAndBias of(const std::string& name) const {
    return {find(name + ".weight"), find(name + ".bias")};
  }
  /// Returns rows [first, first + rows) of a map (out, in); `rows` -1: all.
  Affine affine(const WeightAndBias& map, std::int64_t out, std::int64_t in, std::int64_t first = 0,
      std::int64_t rows = -1);
  Affine affine(const std::string& name, std::int64_t out, std::int64_t in) {
    return affine(of(name), out, in);
  }
  /// Returns a norm of `width` numbers.
  LayerNormed norm(const WeightAndBias& factors, std::int64_t width, double epsilon, bool rms);
  LayerNormed norm(const std::string& name, std::int64_t width, double epsilon, bool rms = false) {
    return norm(of(name), width, epsilon, rms);
  }
  /// Packs a float32 matrix (out, in) and keeps a copy.
  PackedMatrix packed(const torch::Tensor& matrix);
  /// Stores a computed vector as float32 and returns its data.
  const float* kept(const torch::Tensor& values);

 private:
  torch::Tensor find(const std::string& name) const;
  const float* bias_of(const WeightAndBias& of, std::int64_t size);

  Precision precision_;
  const PackedModel* packed_;
  bool halves_;
  std::map<std::string, torch::Tensor> tensors_;
  std::vector<torch::Tensor> kept_;
};

/// Returns whether the architecture of the model is one that TransformerEngine decodes.
bool has_transformer_loop(const nn::Model& model);

/// Takes the matrices of a transformer that TransformerEngine decodes: those of the layers, the
/// embedding, and the softmax's if it has no biases. Embeddings in bands and vectors remain in the
/// model. A tied embedding is packed once. With precision float32, takes nothing.
class PackedModel : public model::WeightTaker {
 public:
  explicit PackedModel(Precision precision) : precision_(precision) {}

  bool takes(const nn::Model& model, const torch::Tensor& weight) override;
  void take(const torch::Tensor& weight, std::int64_t first, const torch::Tensor& rows) override;
  /// With precision file, keeps the blocks of the formats of block_format(). Others will be
  /// unpacked: blocks of several numbers to int8, single numbers to float32; a note says so once.
  bool take_blocks(const torch::Tensor& weight, const std::vector<model::GgufRows>& rows) override;
  /// Moves them to huge pages: each token reads all weights.
  void leaves(std::span<const torch::Tensor> weights) override;

  /// Returns the packed form of a parameter; null: the model has its numbers.
  const PackedMatrix* find(const torch::Tensor& weight) const;
  Precision precision() const { return precision_; }
  /// Returns whether nothing was taken.
  bool empty() const { return weights_.empty(); }

 private:
  struct Packed {
    torch::Tensor weight;  // keeps the address, which is the key, in use
    PackedMatrix matrix;
  };
  Precision precision_;
  std::map<const c10::TensorImpl*, Packed> weights_;
  bool noted_ = false;
};

/// Returns the head for decoding: a packed one of a plain softmax without biases, else the model's
/// own. `packed` (null: none) has the matrices that were taken from the model.
std::shared_ptr<nn::Head> decoding_head(
    const nn::Model& model, Precision precision, const PackedModel* packed = nullptr);

}  // namespace infer
