#pragma once
// A language model: an architecture with its head, made from options alone.

#include <memory>

#include "nn/base/architecture.h"
#include "nn/base/head.h"
#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace nn {

class Model : public torch::nn::Module {
 public:
  /// Initialises from torch's generator as options.shape.init says. Throws Error{bad_config} naming
  /// the option.
  Model(const ModelOptions& options, std::int64_t vocabulary);

  ModelOptions options;
  std::int64_t vocabulary;
  std::shared_ptr<Architecture> architecture;
  std::shared_ptr<Head> head;

  /// Parameters by name; a tied one once.
  std::vector<std::pair<std::string, torch::Tensor>> named_weights() const;
  std::int64_t parameter_count() const;
  /// Bytes that one stream of so many tokens carries, in float32; see carried_state().
  std::int64_t state_bytes(std::int64_t tokens) const;
};

/// Of a model that is not made: costs no memory, whatever its size. Throws Error{bad_config}.
std::int64_t parameter_count(const ModelOptions& options, std::int64_t vocabulary);

/// Throws Error{bad_config}.
std::shared_ptr<Architecture> make_architecture(const ModelOptions& options,
                                                std::int64_t vocabulary);

}  // namespace nn
