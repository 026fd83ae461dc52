#pragma once
// Encodes and decodes base64 (RFC 4648).

#include <optional>
#include <string>
#include <string_view>

namespace text {

/// Encodes bytes with padding.
std::string to_base64(std::string_view bytes);
/// Decodes text with or without padding; returns nothing for an invalid character.
std::optional<std::string> of_base64(std::string_view text);

}  // namespace text
