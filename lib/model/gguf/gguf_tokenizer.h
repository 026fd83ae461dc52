#pragma once
// Converts the tokenizer in a GGUF file's metadata to a tokenizer.json.

#include "core/json.h"
#include "model/gguf/gguf_file.h"

namespace model {

/// Returns a tokenizer.json for text::parse_tokenizer(); empty: the file has no tokenizer. Supports
/// tokenizer.ggml.model "gpt2" (byte-level BPE, split by tokenizer.ggml.pre) and "llama"
/// (SentencePiece BPE, whose merges follow from token scores). Throws Error{bad_config} that names
/// another model or pre-tokenizer, Error{bad_data} for inconsistent lists.
std::string gguf_tokenizer(const GgufFile& file);

/// Returns the known names of tokenizer.ggml.pre, the first of equivalent ones first.
std::vector<std::string> gguf_splits();

/// Returns the token texts that a chat template may use: {"bos_token": "<s>", "eos_token": ...}, as
/// far as the metadata contain them.
core::OrderedJson gguf_special_tokens(const GgufFile& file);

}  // namespace model
