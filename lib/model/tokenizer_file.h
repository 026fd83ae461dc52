#pragma once
// Tokenizer in a model folder or GGUF file.
// Chat template of a model.
// Encodes texts with a model's tokenizer where programs expect shards.
// Reads the tokens that end a text from a transformers folder.

#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace model {

/// Returns the tokenizer's file for messages: the folder's tokenizer.json, or the GGUF file.
std::string tokenizer_path(const std::string& folder);

/// Returns the canonical JSON of the folder's tokenizer.json, else of its vocab.json and
/// merges.txt, else empty; for a GGUF file, of its metadata (gguf_tokenizer()). Throws
/// Error{bad_data} for an unsupported tokenizer, and for vocab.json and merges.txt with another
/// "tokenizer_class" than GPT-2's.
std::string read_tokenizer(const std::string& folder);

/// Returns the id of the token after each document; -1: none.
std::int64_t end_of_document(const std::string& tokenizer);

/// Returns the chat template of the model_folder() of `given`, from text::Chat::in_folder() or a
/// GGUF file's metadata. Throws Error{bad_data} with a hint if there is none, and the errors of
/// model_folder().
text::Chat chat_of(const std::string& given);

/// Returns the template's source; empty: none.
std::string chat_source_of(const std::string& given);

/// Returns the tokenizer of the model at `path` (model_folder()) without loading weights. Throws
/// Error{no_input} if the model has none, and the errors of model_folder() and read_tokenizer().
text::TokenizerPtr tokenizer_of(const std::string& path);

/// Calls text::read_texts() with the tokenizer of the model at `path`.
void read_texts_for(
    const std::string& path, std::int64_t jobs, std::function<void(const std::string&)> note);

/// Returns "eos_token_id", a number or a list, from the folder's generation_config.json, else from
/// `config`, its config.json. Empty: none. Throws Error{bad_config} that names the file for another
/// value.
std::vector<std::int64_t> end_tokens(const std::string& folder, const core::Json& config);

}  // namespace model
