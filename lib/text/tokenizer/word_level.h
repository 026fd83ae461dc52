#pragma once
// Splits text into words between spaces, as WikiText and fairseq do.

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
/// Returns the first character from p on that is not white space, or `end`.
const char* skip_unicode_space(const char* p, const char* end);
/// Implement Tokenizer::cut for the two kinds of words.
const char* plain_word_cut(const char* begin, const char* end);
const char* unicode_word_cut(const char* begin, const char* end);

}  // namespace text
