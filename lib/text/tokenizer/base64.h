#pragma once
// Bytes as text and back: base64 of RFC 4648.

#include <optional>
#include <string>
#include <string_view>

namespace text {

/// With padding.
std::string to_base64(std::string_view bytes);
/// With or without padding; nothing for another character.
std::optional<std::string> of_base64(std::string_view text);

}  // namespace text
