#pragma once
// The tokenizer in a GGUF file's metadata, as a tokenizer.json.

#include <string>
#include <vector>

#include "core/json.h"
#include "model/gguf/gguf_file.h"

namespace model {

/// The text of a tokenizer.json that text::parse_tokenizer() takes; empty: the file has no
/// tokenizer. Of tokenizer.ggml.model "gpt2" (BPE of bytes, split as tokenizer.ggml.pre says) and
/// "llama" (SentencePiece's BPE, whose merges follow from the scores of the tokens). Throws
/// Error{bad_config} naming another model or way to split, Error{bad_data} for lists that do not
/// belong together.
std::string gguf_tokenizer(const GgufFile& file);

/// The names of tokenizer.ggml.pre that are known, the first of those that split alike first.
std::vector<std::string> gguf_splits();

/// The texts of the tokens that a chat template may name: {"bos_token": "<s>", "eos_token": ...},
/// as many as the metadata have.
core::OrderedJson gguf_special_tokens(const GgufFile& file);

}  // namespace model
