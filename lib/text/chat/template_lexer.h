#pragma once
// A chat template as tokens: text between tags, and what stands in them.

#include <cstdint>
#include <string>
#include <vector>

namespace text::chat {

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
  std::string text;  ///< of data and texts what they are, of others as it stands
};

/// With trim_blocks and lstrip_blocks, as transformers sets them; `raw` blocks are data, comments
/// are gone. Throws Error{bad_data} naming origin and line.
std::vector<Token> lex_template(const std::string& source, const std::string& origin);

}  // namespace text::chat
