#pragma once
// Dynamic evaluation: the weights follow the text by a gradient step on each window after it was
// scored (Mikolov et al. 2010; Krause et al. 2018).

#include "nn/arch/model.h"

namespace infer {

struct DynamicOptions {
  bool on = false;
  double rate = 1e-4, decay = 0;
  std::string weights = "all", optimiser = "adam";
  std::int64_t block = 128;  ///< tokens of a step on a prompt; its flag is one of `prompts`
  void fields(core::FieldList& f, bool prompts = false);
  /// Throws Error{usage} for text that is `unusual`, or a --dtype whose weights cannot be trained.
  void check(bool unusual, const std::string& dtype) const;
  /// Returns the type of weights to load for a --dtype: for auto, one whose weights can be trained.
  std::string weight_type(const std::string& dtype) const {
    return on && dtype == "auto" ? "float32" : dtype;
  }
  /// Says why log-probabilities may not be finite.
  const char* doubt() const {
    return on ? "--dynamic-rate may be too high, or the model's weights damaged"
              : "the model's weights may be damaged";
  }
};

/// Trains a model's weights, and restores them at the end. Copies the weights that it changes. With
/// gradient g and the running mean v of its squares, a weight w that began as w0 goes
///   sgd   w -= rate g
///   adam  w -= rate (running mean of g) / (sqrt(v) + 1e-8), both means corrected for their start
///   then  w += min(1, decay sqrt(v) / (mean of sqrt(v) over the tensor)) (w0 - w)
/// The last line is equation 7 of Krause et al. 2018, with squares of the text so far. With lora,
/// the weights are A and B of W0 + B A for each matrix that a layer multiplies by. Not thread safe.
class DynamicWeights {
 public:
  /// Throws Error{usage} for a model without such weights.
  DynamicWeights(nn::Model& model, const DynamicOptions& options);
  ~DynamicWeights();
  DynamicWeights(DynamicWeights&&) = delete;

  /// Takes a step along the gradient of the mean loss of a batch, by its weights; `forward` encodes
  /// it.
  void learn(const nn::Batch& batch, const std::function<nn::Hidden()>& forward);

 private:
  struct Trained {
    torch::Tensor at, initial, mean = {}, square = {};
  };
  void step(Trained& of, const torch::Tensor& gradient) const;

  nn::Model& model_;
  DynamicOptions options_;
  std::vector<torch::Tensor> weights_, initial_;
  std::vector<Trained> trained_;  // the weights, or B and A of each
  double steps_ = 0;
};

}  // namespace infer
