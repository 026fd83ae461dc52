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
/// The file, or the tokenizer `bytes` by that name.
TokenizerPtr load_tokenizer(const std::string& path);

}  // namespace text
