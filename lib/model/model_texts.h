#pragma once
// Encodes texts with a model's tokenizer where programs expect shards.

#include <cstdint>
#include <functional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace model {

/// Returns the tokenizer of the model at `path` (model_folder()) without loading weights. Throws
/// Error{no_input} if the model has none, and the errors of model_folder() and read_tokenizer().
text::TokenizerPtr tokenizer_of(const std::string& path);

/// Calls text::read_texts() with the tokenizer of the model at `path`.
void read_texts_for(const std::string& path, std::int64_t jobs,
                    std::function<void(const std::string&)> note);

}  // namespace model
