#pragma once
// tokenizer.json in, in the format of Hugging Face's tokenizers.

#include <string>
#include <string_view>

#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// Reads a tokenizer.json of one of the kinds above, whoever wrote it. `origin` names it in
/// messages. Throws Error{bad_data} for anything else, naming what is not supported.
TokenizerPtr parse_tokenizer(std::string_view json, const std::string& origin);
/// The file, the tokenizer of a folder (folder_tokenizer(); of a hub's cache, of its snapshot), or
/// the tokenizer `bytes` by that name. Throws Error{no_input} for a folder without one.
TokenizerPtr load_tokenizer(const std::string& path);
/// That of the folder's tokenizer.json, else of its tokenizer.model of sentencepiece's with what
/// tokenizer_config.json adds to it, else of its vocab.json and merges.txt; null: none of these is
/// there. Throws Error{bad_data} for a tokenizer that Tessera does not have, and for a
/// vocab.json and merges.txt beside another "tokenizer_class" than GPT-2's.
TokenizerPtr folder_tokenizer(const std::string& folder);

}  // namespace text
