#pragma once
// What a file that tokenizers are made of is, by how it begins.

#include <string>
#include <string_view>

namespace text {

enum class FileKind {
  json,    ///< an object: tokenizer.json, or GPT-2's encoder.json (vocab.json)
  merges,  ///< GPT-2's vocab.bpe (merges.txt): of bytes, so no unit ends a word with </w>
  codes,   ///< subword-nmt's
  ranks,   ///< .tiktoken: they count up from 0
  gguf,    ///< a model of llama.cpp's with its tokenizer
  counts,  ///< fairseq's dict.txt; or any text whose first line has a space
  other
};
FileKind kind_of(std::string_view text);

/// For one that stands alone where a tokenizer.json belongs: what it is and what makes a tokenizer
/// of it.
std::string not_a_tokenizer(FileKind kind);
/// For GPT-2's encoder.json alone, which only its reader tells from a tokenizer.json.
inline constexpr std::string_view kVocabularyAlone =
    "GPT-2's vocabulary without its merges; both make a tokenizer: "
    "tokenize --import encoder.json vocab.bpe";

}  // namespace text
