#pragma once
// Tokens as people write them: text where there is a tokenizer, ids where there is none.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace text {

class TextOrIds {
 public:
  /// `tokenizer` may be null; `name` is whose it would be, for messages.
  TextOrIds(TokenizerPtr tokenizer, std::string name)
      : tokenizer_(std::move(tokenizer)), name_(std::move(name)) {}

  /// The tokens of a text, or, with `ids`, of ids with spaces between. Throws Error{usage} where
  /// there is no tokenizer, for what are no ids and for no token at all.
  std::vector<std::uint32_t> encode(const std::string& text, bool ids) const;
  /// Their text, or the ids with spaces between. What is no token's id is left out of a text.
  std::string decode(std::span<const std::uint32_t> tokens) const;
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

 private:
  TokenizerPtr tokenizer_;
  std::string name_;
};

}  // namespace text
