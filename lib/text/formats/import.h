#pragma once
// Makes tokenizers from the files of other programs.
// Recognises the files that tokenizers are made of by their first bytes.
// Reads the lines of a text in memory and reports errors with their line numbers.

#include "text/tokenizer/tokenizer.h"

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
  world,  ///< RWKV's rwkv_vocab_v20230424.txt: an id, a Python literal and its bytes per line
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

/// Lines iterates over the lines of a text.
class Lines {
 public:
  Lines(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

  /// Gets the next line without its newline and without a '\r' before it; returns false at the end.
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    ++number_;
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_ = end == rest_.npos ? std::string_view() : rest_.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }
  /// Returns the number, from 1, of the line that next() returned.
  std::size_t number() const { return number_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    core::bad_data("{}:{}: {}", name_, number_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view rest_;
  std::string name_;
  std::size_t number_ = 0;
};

/// Returns make(). What it throws names `origin`.
template <class Make> auto named(const std::string& origin, const Make& make) {
  try {
    return make();
  } catch (const core::Error& error) {
    if (std::string_view(error.what()).starts_with(origin)) throw;
    core::bad_data("{}: {}", origin, error.what());
  }
}

/// Reads one or two files, whose contents determine their kinds:
///   encoder.json (vocab.json) + vocab.bpe (merges.txt)   GPT-2's two files, in either order
///   a .tiktoken file        base64 token and rank per line: GPT-2's family
///   fairseq's dict.txt      word and count per line: a word tokenizer with fairseq's ids
///   subword-nmt's codes     units, with the ids of a dict.txt if it is given too
///   RWKV's vocabulary       id, token as Python writes it, and size per line: the longest token
/// Throws Error{bad_data}, naming file and line, Error{no_input}, and Error{usage} if no importer
/// accepts the files.
TokenizerPtr import_tokenizer(const std::vector<std::string>& paths);

/// A NamedText is the text of a file with its name for messages. The functions below import texts.
struct NamedText {
  std::string name, text;
};
TokenizerPtr import_gpt2(const NamedText& vocabulary, const NamedText& merges);
TokenizerPtr import_tiktoken(const NamedText& ranks);
/// The end of a document is the id 0, which the file does not have.
TokenizerPtr import_world(const NamedText& vocabulary);
/// Assigns ids to `<s>`, `<pad>`, `</s>`, `<unk>`, then the words; a newline is `</s>`.
TokenizerPtr import_fairseq(const NamedText& dictionary);
/// Assigns ids to fairseq's four special tokens (so that `</s>` ends documents), the units of the
/// dictionary if it is given, then the characters and merged units of the codes that are not in it.
TokenizerPtr import_codes(const NamedText& codes, const NamedText* dictionary);

}  // namespace text
