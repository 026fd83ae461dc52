#pragma once
// Shared code of tokenizers of SentencePiece's kind: byte tokens, and marks for spaces.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/json_text.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// A PieceDecoder is the decoder of a tokenizer.json: replacements in each token, in order, tokens
/// <0x00> to <0xFF> as bytes, and the removal of one space at the beginning of a text.
struct PieceDecoder {
  std::vector<std::pair<std::string, std::string>> replaced = {};
  bool bytes = false, strips_space = false;
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

  bool is_byte(std::uint32_t id) const { return byte_of_[id] >= 0; }
  std::uint32_t byte_token(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }
  /// Returns the form of a space in tokens; empty: a space is unchanged.
  const std::string& space() const { return space_; }

  /// Appends the text of `id`, whose token is `token`; see Tokenizer::decode_token(). Throws
  /// Error{bad_data} for a token that the decoder makes more than 64 times as long.
  void decode(std::uint32_t id, std::string_view token, bool& line_start, std::string& out) const;
  /// Writes "decoder" of a tokenizer.json.
  void append_decoder(JsonText& json) const;

 private:
  std::uint32_t bytes_[256] = {};
  std::vector<std::int16_t> byte_of_;  // byte of each id; -1: not a byte token
  std::string space_;
  PieceDecoder decoder_;
  bool names_bytes_ = false;  // a token has the name of a byte and is none
};

}  // namespace text
