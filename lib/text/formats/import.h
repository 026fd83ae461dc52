#pragma once
// Tokenizers out of files that others have.

#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace text {

/// Reads one or two files, told apart by what is in them:
///   encoder.json (vocab.json) + vocab.bpe (merges.txt)   GPT-2's two files, in either order
///   a .tiktoken file        base64 token and rank a line: GPT-2's family
///   fairseq's dict.txt      word and count a line: a word tokenizer with fairseq's ids
///   subword-nmt's codes     units, with the ids of a dict.txt if it is given too
/// Throws Error{bad_data} naming file and line, Error{no_input}, Error{usage} if no importer
/// takes them.
TokenizerPtr import_tokenizer(const std::vector<std::string>& paths);

/// The same from texts; the names are for messages.
struct NamedText {
  std::string name, text;
};
TokenizerPtr import_gpt2(const NamedText& vocabulary, const NamedText& merges);
TokenizerPtr import_tiktoken(const NamedText& ranks);
/// `<s>`, `<pad>`, `</s>`, `<unk>`, then the words; a newline is `</s>`.
TokenizerPtr import_fairseq(const NamedText& dictionary);
/// The same four (special tokens, so that `</s>` ends documents), the dictionary's units if there
/// is one, then characters and merged units of the codes that are not in it.
TokenizerPtr import_codes(const NamedText& codes, const NamedText* dictionary);

}  // namespace text
