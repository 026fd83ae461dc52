#pragma once
// A language model: an architecture with its head, created from options.

#include "nn/base/architecture.h"

namespace nn {

class Model : public torch::nn::Module {
 public:
  /// Initialises the weights from torch's generator by options.shape.init. Throws Error{bad_config}
  /// that names the option.
  Model(const ModelOptions& options, std::int64_t vocabulary);

  ModelOptions options;
  std::int64_t vocabulary;
  std::shared_ptr<Architecture> architecture;
  std::shared_ptr<Head> head;

  /// Returns the parameters by name; a tied one occurs once.
  std::vector<std::pair<std::string, torch::Tensor>> named_weights() const;
  std::int64_t parameter_count() const;
  /// Returns the bytes in float32 that one stream of `tokens` tokens carries; see carried_state().
  std::int64_t state_bytes(std::int64_t tokens) const;
};

/// Returns whether a weight is a matrix that a layer multiplies its input by: whether it has two
/// dimensions and a name "weight..." as in Linear and torch's LSTM. Embeddings, positions, heads,
/// experts and convolutions are excluded.
bool is_hidden_matrix(const std::string& name, const torch::Tensor& weight);

/// Counts the parameters without allocating the model. Throws Error{bad_config}.
std::int64_t parameter_count(const ModelOptions& options, std::int64_t vocabulary);

/// Creates an architecture. Throws Error{bad_config}.
std::shared_ptr<Architecture> make_architecture(
    const ModelOptions& options, std::int64_t vocabulary);

}  // namespace nn
