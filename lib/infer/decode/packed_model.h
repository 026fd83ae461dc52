#pragma once
// Packs a model's weights while they are read, so that their float32 form never exists as a whole.
// Float32 weights, which are not packed, are put into huge pages.
// A plain softmax with packed weights, for decoding.

#include "infer/decode/decode_kernels.h"
#include "model/weights.h"

namespace infer {

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
};

/// Returns whether the model's head is a plain softmax without biases.
bool packs_head(const nn::Model& model);
/// Returns the head for decoding: a packed one if packs_head(), else the model's own. `packed`
/// (null: none) has the matrices that were taken from the model.
std::shared_ptr<nn::Head> decoding_head(
    const nn::Model& model, Precision precision, const PackedModel* packed = nullptr);

}  // namespace infer
