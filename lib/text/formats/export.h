#pragma once
// Writes tokenizers in file formats of other programs.

#include <string>

#include "text/tokenizer/tokenizer.h"

namespace text {

/// Writes GPT-2's two files, FOLDER/vocab.json and FOLDER/merges.txt, which transformers'
/// GPT2Tokenizer and others read, each through core::Output. Creates the folder if it does not
/// exist. Throws Error{usage} unless the tokenizer is byte-level BPE.
void export_gpt2(const Tokenizer& tokenizer, const std::string& folder);

}  // namespace text
