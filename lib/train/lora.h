#pragma once
// Trains low-rank terms instead of a model's weights (LoRA, Hu et al. 2021): W = W0 + s B A.

#include "model/families/family.h"
#include "nn/arch/model.h"
#include "train/optimiser.h"

namespace train {

/// The low-rank terms of a model. The model's matrices always contain W, so that other code needs
/// no knowledge of the terms; dA = s B^T dW and dB = s dW A^T are computed from the gradient of W.
/// This saves no memory for weights; the optimiser's moments are those of A and B.
class Lora : public TrainedPart {
 public:
  /// Draws A (r, in) from torch's generator, uniform within 1 / sqrt(in), and sets B (out, r) to 0,
  /// so that the model is unchanged. Disables the gradient of weights without a term. `family`
  /// names the matrices. Throws Error{usage} if the targets select none.
  Lora(std::shared_ptr<nn::Model> model, const model::Family& family, const LoraOptions& options);

  void to(torch::Device device) override;
  /// Returns A and B as "MODULE.lora_A.weight" and "MODULE.lora_B.weight".
  NamedWeights weights() const override;
  bool in_model() const override { return false; }
  /// Adds the gradients of A and B computed from those of the matrices, and clears the latter.
  void take_gradients() override;
  /// Computes W from the present terms.
  void apply() override;
  /// Saves the terms in peft's format (model::save_adapter). `base`: origin of the model.
  void save(const std::string& folder, const std::string& base) const;

 private:
  struct Term {
    std::string module;
    torch::Tensor weight;  // rows of the model's weight with this term
    model::Piece piece;
    torch::Tensor first;  // W0: the original rows
    torch::Tensor a, b;
  };
  std::shared_ptr<nn::Model> model_;
  LoraOptions options_;
  double scale_;
  std::vector<Term> terms_;
};

}  // namespace train
