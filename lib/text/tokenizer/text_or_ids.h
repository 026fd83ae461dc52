#pragma once
// Converts tokens to and from what people write: text with a tokenizer, ids without one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace text {

/// A TextOrIds wraps a tokenizer that may be absent.
class TextOrIds {
 public:
  /// `tokenizer` may be null; `name` is its owner in messages.
  TextOrIds(TokenizerPtr tokenizer, std::string name)
      : tokenizer_(std::move(tokenizer)), name_(std::move(name)) {}

  /// Encodes a text or, with `ids`, parses ids separated by spaces. Throws Error{usage} if a
  /// tokenizer is needed and absent, for invalid ids, and for an empty result.
  std::vector<std::uint32_t> encode(const std::string& text, bool ids) const;
  /// Returns the text of the tokens, or the ids separated by spaces. A text omits ids without a
  /// token.
  std::string decode(std::span<const std::uint32_t> tokens) const;
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

 private:
  TokenizerPtr tokenizer_;
  std::string name_;
};

}  // namespace text
