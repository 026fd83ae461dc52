#pragma once
// Evaluates a model with its memories on a text.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/memory.h"
#include "tessera/model.h"
#include "tessera/options.h"

namespace tessera {

/// The result of evaluate().
struct Evaluation {
  double nats = 0;           ///< sum of -log p over the scored tokens
  std::uint64_t tokens = 0;  ///< scored tokens
  double loss = 0;           ///< nats a token
  double perplexity = 0;     ///< exp(loss)
  double bits_per_byte = 0;  ///< of the source text; NaN if the shard does not know its bytes
  std::string signature;     ///< the settings that the figures depend on
};

/// Scores texts or shards, as one text, as eval-ppl(1) does. `options`: those of its windows
/// ("window", "stride", "reset", "protocol", ...). Throws Error{64} for options that contradict
/// each other or the model, Error{65} for another tokenizer than the model's, and the errors of
/// Store and Ngrams.
Evaluation evaluate(const Model& model, const std::vector<std::string>& files,
    const Memory& memory = {}, const Options& options = {});

/// Returns `memory` with the weights and temperatures that are best on a validation text
/// (eval-ppl --tune), as options. Throws the errors of evaluate().
Memory tune(const Model& model, const std::string& valid, const Memory& memory,
    const Options& options = {});

}  // namespace tessera
