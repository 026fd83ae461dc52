#pragma once
// Tokenizer in a model folder or GGUF file.

#include <cstdint>
#include <string>

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

}  // namespace model
