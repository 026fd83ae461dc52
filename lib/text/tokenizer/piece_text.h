#pragma once
// Shared code of tokenizers of SentencePiece's kind: byte tokens, and marks for spaces.

#include "text/tokenizer/steps_json.h"

namespace text {

/// A PieceDecoder is the decoder of a tokenizer.json: replacements in each token, in order, tokens
/// <0x00> to <0xFF> as bytes, and the removal of one space at the beginning of a text.
struct PieceDecoder {
  std::vector<std::pair<std::string, std::string>> replaced = {};
  bool bytes = false, strips_space = false;
};

/// PieceRules are what a tokenizer.model has beyond the tokenizers of other programs. With them the
/// ids are exactly sentencepiece's.
struct PieceRules {
  /// The user-defined pieces, which the normalizer and the merges leave whole.
  std::vector<std::uint32_t> symbols = {};
  std::vector<std::uint32_t> unused = {};  ///< pieces that text never encodes to
  /// Results of merges whose score is that of the result before them in the list of merges.
  std::vector<std::uint32_t> tied = {};
  std::string unknown = {};  ///< text of the unknown token
};

/// A PieceText converts the tokens of such a tokenizer to text.
class PieceText {
 public:
  PieceText() = default;
  /// `space` is the pre-tokenizer's replacement of a space, and `prefixed` says whether it puts one
  /// before a text; the normalizer may also do both. Without a decoder, that of these steps is
  /// used. Throws Error{bad_data} if `byte_fallback` is set and one of the tokens <0x00> to <0xFF>
  /// is missing.
  PieceText(const Tokenizer& tokenizer, bool byte_fallback, const Normalizer& normalizer,
      std::optional<PieceDecoder> decoder, std::string space = {}, bool prefixed = false);
  /// Sets the unknown token and its text.
  void set_unknown(std::uint32_t id, std::string text);

  bool is_byte(std::uint32_t id) const { return byte_of_[id] >= 0; }
  std::uint32_t byte_token(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }
  /// Returns the form of a space in tokens; empty: a space is unchanged.
  const std::string& space() const { return space_; }

  /// Appends the text of `id`, whose token is `token`; see Tokenizer::decode_token(). Throws
  /// Error{bad_data} for a token that the decoder makes more than 64 times as long.
  void decode(std::uint32_t id, std::string_view token, bool& line_start, std::string& out) const;
  /// Returns "decoder" of a tokenizer.json.
  core::Json decoder_json() const;

 private:
  std::uint32_t bytes_[256] = {};
  std::vector<std::int16_t> byte_of_;  // byte of each id; -1: not a byte token
  std::string space_;
  PieceDecoder decoder_;
  bool decodes_bytes_ = false;
  bool names_bytes_ = false;  // a token has the name of a byte and is decoded to that name
  bool trims_ = false;        // encoding removes all spaces before a text
  std::uint32_t unknown_ = 0xFFFFFFFF;
  std::string unknown_text_;
};

/// Returns "sentencepiece", the rules, a member of "model".
core::Json rules_json(const PieceRules& rules);
/// Returns the user-defined pieces as tokens to find in a text.
std::vector<AddedToken> symbols_of(const PieceRules& rules, const Vocabulary& vocabulary);
/// Returns a pattern that matches the symbols, the longest first; empty if there are none.
std::string pattern_of(const std::vector<AddedToken>& symbols);

}  // namespace text
