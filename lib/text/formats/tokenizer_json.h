#pragma once
// Reads tokenizer.json, the format of Hugging Face's tokenizers.
// Writes tokenizers in file formats of other programs.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// Parses a tokenizer.json of one of the kinds in tokenizer.h, whichever program wrote it. `origin`
/// names it in messages. Throws Error{bad_data} for anything else, naming the unsupported part.
TokenizerPtr parse_tokenizer(std::string_view json, const std::string& origin);
/// Loads a tokenizer from a file or a folder (folder_tokenizer(); for a hub's cache, the folder of
/// its snapshot), or returns the tokenizer named `bytes`. Throws Error{no_input} for a folder
/// without one.
TokenizerPtr load_tokenizer(const std::string& path);
/// Loads the tokenizer of a folder: tokenizer.json, else SentencePiece's tokenizer.model with the
/// additions of tokenizer_config.json, else vocab.json and merges.txt. Returns null if none of
/// these exists. Throws Error{bad_data} for an unsupported tokenizer, and for vocab.json and
/// merges.txt beside a "tokenizer_class" other than GPT-2's.
TokenizerPtr folder_tokenizer(const std::string& folder);

/// Writes GPT-2's two files, FOLDER/vocab.json and FOLDER/merges.txt, which transformers'
/// GPT2Tokenizer and others read, each through core::Output. Creates the folder if it does not
/// exist. Throws Error{usage} unless the tokenizer is byte-level BPE.
void export_gpt2(const Tokenizer& tokenizer, const std::string& folder);

}  // namespace text
