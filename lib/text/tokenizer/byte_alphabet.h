#pragma once
// GPT-2's byte alphabet, which writes every byte as a printable character, so that JSON can hold
// tokens of any bytes (Radford et al. 2019, bytes_to_unicode of encoder.py). The bytes 33-126,
// 161-172 and 174-255 are the characters with that number; the other 68 bytes are, in order, the
// characters from U+0100 on.
// Encodes and decodes base64 (RFC 4648).

#include "core/base.h"

namespace text {

/// Appends `bytes` in the alphabet, as UTF-8.
void append_in_alphabet(std::string_view bytes, std::string& out);

/// Returns the bytes that `text` represents; nothing if a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

/// Returns the bytes in the order of their characters, which is the order of GPT-2's first 256 ids.
const std::array<std::uint8_t, 256>& bytes_in_alphabet_order();

/// Encodes bytes with padding.
std::string to_base64(std::string_view bytes);
/// Decodes text with or without padding; returns nothing for an invalid character.
std::optional<std::string> of_base64(std::string_view text);

}  // namespace text
