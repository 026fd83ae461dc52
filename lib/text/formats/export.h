#pragma once
// Tokenizers as files of other programs.

#include <string>

#include "text/tokenizer/tokenizer.h"

namespace text {

/// GPT-2's two files, which transformers' GPT2Tokenizer and others read: FOLDER/vocab.json and
/// FOLDER/merges.txt, each whole or absent. The folder is made if it is not there. Throws
/// Error{usage} unless the tokenizer is byte-level BPE.
void export_gpt2(const Tokenizer& tokenizer, const std::string& folder);

}  // namespace text
