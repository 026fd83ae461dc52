#pragma once
// Makes tokenizers from the files of other programs.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// Reads one or two files, whose contents determine their kinds:
///   encoder.json (vocab.json) + vocab.bpe (merges.txt)   GPT-2's two files, in either order
///   a .tiktoken file        base64 token and rank per line: GPT-2's family
///   fairseq's dict.txt      word and count per line: a word tokenizer with fairseq's ids
///   subword-nmt's codes     units, with the ids of a dict.txt if it is given too
/// Throws Error{bad_data}, naming file and line, Error{no_input}, and Error{usage} if no importer
/// accepts the files.
TokenizerPtr import_tokenizer(const std::vector<std::string>& paths);

/// A NamedText is the text of a file with its name for messages. The functions below import texts.
struct NamedText {
  std::string name, text;
};
TokenizerPtr import_gpt2(const NamedText& vocabulary, const NamedText& merges);
TokenizerPtr import_tiktoken(const NamedText& ranks);
/// Assigns ids to `<s>`, `<pad>`, `</s>`, `<unk>`, then the words; a newline is `</s>`.
TokenizerPtr import_fairseq(const NamedText& dictionary);
/// Assigns ids to fairseq's four special tokens (so that `</s>` ends documents), the units of the
/// dictionary if it is given, then the characters and merged units of the codes that are not in it.
TokenizerPtr import_codes(const NamedText& codes, const NamedText* dictionary);

}  // namespace text
