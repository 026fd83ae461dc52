#pragma once
// Splits a chat template into tokens: text between tags, and the tokens inside tags.

#include "core/base.h"

namespace text::chat {

/// A Token is one token of a template.
struct Token {
  enum class What : std::uint8_t {
    data,
    begin_print,
    end_print,
    begin_block,
    end_block,
    name,
    text,
    whole,
    real,
    sign,
    end
  } what;
  int line;
  std::string text;  ///< the value of data and texts; the source text of other tokens
};

/// Splits a template with trim_blocks and lstrip_blocks, as transformers sets them. The contents of
/// `raw` blocks are data; comments are dropped. Throws Error{bad_data}, naming origin and line.
std::vector<Token> lex_template(const std::string& source, const std::string& origin);

}  // namespace text::chat
