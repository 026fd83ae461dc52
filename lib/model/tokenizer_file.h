#pragma once
// The tokenizer that stands in a model's folder or GGUF file.

#include <cstdint>
#include <string>

namespace model {

/// The name of a model's tokenizer for messages: a folder's tokenizer.json, or the GGUF
/// file.
std::string tokenizer_path(const std::string& folder);

/// Canonical JSON of the folder's tokenizer.json, else of its vocab.json and merges.txt, else
/// empty; of a GGUF file, of its metadata (gguf_tokenizer()). Throws Error{bad_data} for a
/// tokenizer that Tessera does not have, and for a vocab.json and merges.txt beside another
/// "tokenizer_class" than GPT-2's.
std::string read_tokenizer(const std::string& folder);

/// The id of the token after each document; -1: none.
std::int64_t end_of_document(const std::string& tokenizer);

}  // namespace model
