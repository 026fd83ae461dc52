#pragma once
// Recognises the files that tokenizers are made of by their first bytes.

#include <string>
#include <string_view>

namespace text {

/// FileKind is the kind of such a file.
enum class FileKind {
  /// An object: tokenizer.json, or GPT-2's encoder.json (vocab.json).
  json,
  /// GPT-2's vocab.bpe (merges.txt), a byte-level BPE: no unit ends a word with </w>.
  merges,
  codes,  ///< subword-nmt's
  ranks,  ///< .tiktoken: ranks count up from 0
  gguf,   ///< a model of llama.cpp, with its tokenizer
  /// fairseq's dict.txt, or any text whose first line has a space.
  counts,
  other
};
FileKind kind_of(std::string_view text);

/// Says, for a file of this kind in place of a tokenizer.json, what it is and how to make a
/// tokenizer from it.
std::string not_a_tokenizer(FileKind kind);
/// The text of not_a_tokenizer() for GPT-2's encoder.json alone, which only its reader
/// distinguishes from a tokenizer.json.
inline constexpr std::string_view kVocabularyAlone =
    "GPT-2's vocabulary without its merges; convert both: tokenize --import encoder.json vocab.bpe";

}  // namespace text
