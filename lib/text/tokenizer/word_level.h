#pragma once
// Splits text into words between spaces, as WikiText and fairseq do.
// Splits words into units of characters by byte-pair encoding as subword-nmt does (Sennrich et al.
// 2016). The last character of a word carries `</w>`; merges are applied in order of rank; a unit
// that is not in the vocabulary is `<unk>`.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// WordLevel is the tokenizer of kind `word`.
class WordLevel : public Tokenizer {
 public:
  struct Options {
    std::string unknown = "<unk>";  ///< token of unknown words
    /// Token of a newline. If set, words end only at ' ' and newlines. If empty, words end at
    /// Unicode white space, which has no token.
    std::string newline = "<eos>";
  };
  /// Takes the tokens. Both tokens of `options` must be in the vocabulary, whose tokens must be
  /// UTF-8. Throws Error{bad_data}.
  WordLevel(Vocabulary vocabulary, Options options);

  TokenizerKind kind() const override { return TokenizerKind::word; }
  std::unique_ptr<Encoder> encoder() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const Options& options() const { return options_; }
  std::uint32_t unknown() const { return unknown_; }
  /// Returns the id of the newline's token; kNoToken if there is none.
  std::uint32_t newline() const { return newline_; }
  static constexpr std::uint32_t kNoToken = 0xFFFFFFFF;

 private:
  Options options_;
  std::uint32_t unknown_, newline_ = kNoToken;
};

/// Return the end of the word at p < end, where p is not at a separator: the next separator, `end`,
/// or p + kMaxPretokenBytes (longer words are cut there).
const char* plain_word_end(const char* p, const char* end);    // separators: ' ' and '\n'
const char* unicode_word_end(const char* p, const char* end);  // separators: white space
/// Implement Tokenizer::cut for the two kinds of words.
const char* plain_word_cut(const char* begin, const char* end);
const char* unicode_word_cut(const char* begin, const char* end);

/// CharUnits is the tokenizer of kind `units`.
class CharUnits : public Tokenizer {
 public:
  static constexpr std::string_view kEndOfWord = "</w>";

  /// Takes tokens in UTF-8; those that end a word carry `</w>`, and token() returns them in this
  /// form. `unknown` and the special tokens must be in `vocabulary`. Throws Error{bad_data}.
  CharUnits(Vocabulary vocabulary, std::vector<Merge> merges, std::vector<SpecialToken> special,
      std::string unknown);

  TokenizerKind kind() const override { return TokenizerKind::units; }
  std::unique_ptr<Encoder> encoder() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const MergeTable& merges() const { return merges_; }
  std::uint32_t unknown() const { return unknown_; }

 private:
  MergeTable merges_;
  std::string unknown_name_;
  std::uint32_t unknown_;
};

}  // namespace text
