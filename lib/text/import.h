#pragma once
// Tokenizers out of files that others have.

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace text {

/// Reads one or two files, told apart by what is in them:
///   encoder.json (vocab.json) + vocab.bpe (merges.txt)   GPT-2's two files, in either order
///   a .tiktoken file                                     base64 token and rank a line
/// Throws Error{bad_data} naming file and line, Error{no_input}, Error{usage} if no importer
/// takes them.
TokenizerPtr import_tokenizer(const std::vector<std::string>& paths);

/// The same from texts; the names are for messages.
struct NamedText {
  std::string name, text;
};
TokenizerPtr import_gpt2(const NamedText& vocabulary, const NamedText& merges);
TokenizerPtr import_tiktoken(const NamedText& ranks);

}  // namespace text
