#pragma once
// Continues prompts with a model and its memories.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/memory.h"
#include "tessera/model.h"
#include "tessera/options.h"

namespace tessera {

/// A generated text.
struct Text {
  std::string text;                  ///< without the prompt, the end token and the stop string
  std::vector<std::int64_t> tokens;  ///< all generated tokens, with those
  double log_prob = 0;               ///< of the tokens, in nats, by the mixture
  bool cut = false;                  ///< it reached "max-tokens" or the window's end
};

/// A Generator continues prompts as sample(1) does. Not thread safe.
class Generator {
 public:
  /// `options`: those of sample ("temperature", "top-p", "max-tokens", "stop", "beam", "samples",
  /// ...) but for its prompts and outputs. Texts depend on the seed of start(). Throws Error{64}
  /// for options that contradict each other or the model, Error{65} for a model without a
  /// tokenizer, and the errors of Store and Ngrams.
  explicit Generator(const Model& model, const Memory& memory = {}, const Options& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;

  /// Returns the texts of the prompts, "samples" for each, in the prompts' order. A text does not
  /// depend on the other prompts of a call, but on the number of prompts before it.
  std::vector<Text> generate(const std::vector<std::string>& prompts);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
