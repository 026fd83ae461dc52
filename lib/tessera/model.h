#pragma once
// Loads language models.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tessera/tokenizer.h"

namespace model {
struct Loaded;
}

namespace tessera {

/// Sets the process's number of threads (0: one for each processor) and its seed. `note` receives
/// what the programs say on stderr: one line for each thing that is cut, ignored or guessed. Call
/// it first, before another thread starts; without a call, the first Model or train() calls it with
/// the defaults. Results do not depend on the time, but may on the number of threads, in rounding.
void start(
    int threads = 0, std::uint64_t seed = 1, std::function<void(const std::string&)> note = {});

/// How a Model is loaded.
struct ModelSettings {
  std::string dtype = "float32";  ///< "float32", "float64" or "bfloat16"
  std::string device = "auto";    ///< "cpu", "cuda", "cuda:1"; auto: a GPU if there is one
  std::string adapter = {};       ///< folder of a LoRA adapter; empty: none
};

/// A Model is a model of train(1), of transformers, or of a GGUF file (man 5 model). Copies share
/// the weights. Not thread safe.
class Model {
 public:
  /// Loads a folder or a GGUF file. Throws Error{66} for a path without a model, Error{78} for a
  /// config.json that is wrong or of an unsupported family, and Error{65} for weights that are
  /// damaged or do not fit.
  explicit Model(const std::string& path, const ModelSettings& settings = {});

  /// Returns the number of outputs of the head.
  std::int64_t vocabulary() const;
  /// Returns the number of parameters; shared ones count once.
  std::int64_t parameters() const;
  /// Returns the digest of weights and architecture, in hexadecimal, which datastores record.
  std::string fingerprint() const;
  /// Returns the tokenizer. Throws Error{65} if the model has none.
  Tokenizer tokenizer() const;

  /// Returns how the model was loaded.
  const ModelSettings& settings() const { return settings_; }
  /// For Tessera's own code: the type is not installed.
  const model::Loaded& loaded() const { return *loaded_; }

 private:
  ModelSettings settings_;
  std::shared_ptr<const model::Loaded> loaded_;
};

}  // namespace tessera
