#pragma once
// What tokenizers of SentencePiece's kind share: tokens that are bytes, and spaces that are marks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/json_text.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

class PieceText {
 public:
  PieceText() = default;
  /// `space`: what a pre-tokenizer makes of a space, and whether it puts one before a text; the
  /// normalizer may do both too. Throws Error{bad_data} for `byte_fallback` where one of the tokens
  /// <0x00> to <0xFF> is missing.
  PieceText(const Tokenizer& tokenizer, bool byte_fallback, const Normalizer& normalizer,
            std::string space = {}, bool prefixed = false);

  bool is_byte(std::uint32_t id) const { return byte_of_[id] >= 0; }
  std::uint32_t byte_token(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }
  /// What a space of the text is in the tokens; empty: itself.
  const std::string& space() const { return space_; }

  /// Appends what `id` prints, whose token is `token`; see Tokenizer::decode_token().
  void decode(std::uint32_t id, std::string_view token, bool& line_start, std::string& out) const;
  /// "decoder" of a tokenizer.json.
  void append_decoder(JsonText& json) const;

 private:
  std::uint32_t bytes_[256] = {};
  std::vector<std::int16_t> byte_of_;  // of each id; -1: it is no byte's
  std::string space_;
  bool prefixed_ = false;  // a text is given one space before it
};

}  // namespace text
