#pragma once
// Words between spaces, as WikiText and fairseq have them.

#include "text/tokenizer/tokenizer.h"

namespace text {

class WordLevel : public Tokenizer {
 public:
  struct Options {
    std::string unknown = "<unk>";  ///< token of words not known
    /// Token of a newline, and words end at ' ' and newlines only. Empty: words end at Unicode's
    /// white space, which gives no token.
    std::string newline = "<eos>";
  };
  /// Both tokens must be in the vocabulary (and be UTF-8, as all its tokens). Throws
  /// Error{bad_data}.
  WordLevel(Vocabulary vocabulary, Options options);

  TokenizerKind kind() const override { return TokenizerKind::word; }
  std::unique_ptr<Encoder> encoder() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const Options& options() const { return options_; }
  std::uint32_t unknown() const { return unknown_; }
  /// Id of the newline's token; kNoToken if it has none.
  std::uint32_t newline() const { return newline_; }
  static constexpr std::uint32_t kNoToken = 0xFFFFFFFF;

 private:
  Options options_;
  std::uint32_t unknown_, newline_ = kNoToken;
};

/// The end of the word at p < end, which is no separator: the next separator, `end`, or
/// kMaxPretokenBytes further (longer words are cut there).
const char* plain_word_end(const char* p, const char* end);    // separators ' ' and '\n'
const char* unicode_word_end(const char* p, const char* end);  // separators: white space
/// The first character from p on that is no white space, or end.
const char* skip_unicode_space(const char* p, const char* end);
/// Tokenizer::cut for words of the two kinds.
const char* plain_word_cut(const char* begin, const char* end);
const char* unicode_word_cut(const char* begin, const char* end);

}  // namespace text
