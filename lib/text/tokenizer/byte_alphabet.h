#pragma once
// GPT-2's alphabet: every byte as a printable character, so that tokens of any bytes can stand in
// JSON (Radford et al. 2019, bytes_to_unicode of encoder.py): 33-126, 161-172 and 174-255 are the
// characters of that number, the other 68 bytes, in order, those from U+0100 on.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace text {

/// Appends `bytes` in the alphabet, as UTF-8.
void append_in_alphabet(std::string_view bytes, std::string& out);

/// The bytes that `text` stands for; nothing if a character of it is not of the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

/// The bytes in the order of their characters: GPT-2's first 256 ids.
const std::array<std::uint8_t, 256>& bytes_in_alphabet_order();

}  // namespace text
