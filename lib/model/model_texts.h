#pragma once
// Texts where shards are asked for, read with a model's tokenizer.

#include <cstdint>
#include <functional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace model {

/// The tokenizer of the model that `path` names (model_folder()), without its weights. Throws
/// Error{no_input} where it has none, and as model_folder() and read_tokenizer() do.
text::TokenizerPtr tokenizer_of(const std::string& path);

/// text::read_texts() with the tokenizer of the model that `path` names.
void read_texts_for(const std::string& path, std::int64_t jobs,
                    std::function<void(const std::string&)> note);

}  // namespace model
