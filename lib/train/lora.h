#pragma once
// Training of low-rank terms instead of a model's weights (LoRA, Hu et al. 2021): W = W0 + s B A.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/families/family.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "train/optimiser.h"
#include "train/train_options.h"

namespace train {

/// The terms of a model, and the model that they make. Its matrices hold W all the time, so that
/// whatever reads the model knows nothing of terms; dA = s B^T dW and dB = s dW A^T are made of the
/// gradient of W. The weights take no less memory so; the optimiser's moments are those of A and B.
/// Not thread safe.
class Lora {
 public:
  /// A (r, in) is drawn from torch's generator, uniform within 1 / sqrt(in); B (out, r) is 0: the
  /// model stays what it is. The weights without a term have no gradient from now on. `family`
  /// names the matrices. Throws Error{usage} where the targets choose none.
  Lora(std::shared_ptr<nn::Model> model, const model::Family& family, const LoraOptions& options);

  /// Moves the terms; the model is moved by its owner.
  void to(torch::Device device);
  /// "MODULE.lora_A.weight" and "MODULE.lora_B.weight".
  NamedWeights weights() const;
  /// Adds the gradients of A and B that those of the matrices make, and takes these away.
  void take_gradients();
  /// Makes W of the terms as they stand.
  void apply();
  /// The terms in peft's form (model::save_adapter). `base`: where the model came from.
  void save(const std::string& folder, const std::string& base) const;

 private:
  struct Term {
    std::string module;
    torch::Tensor weight;  // of the model, with this term's rows
    model::Piece piece;
    torch::Tensor first;  // W0: these rows as they were
    torch::Tensor a, b;
  };
  std::shared_ptr<nn::Model> model_;
  LoraOptions options_;
  double scale_;
  std::vector<Term> terms_;
};

}  // namespace train
