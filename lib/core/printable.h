#pragma once
// Text of strangers (names of files, what is in them) on a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace core {

/// Bytes of the character at the front of `text` (not empty) if it is printable: ASCII from the
/// space on, or UTF-8 other than the controls U+0080-9F; else 0.
std::size_t printable_length(std::string_view text);

/// `text` as one line that moves no cursor: \xHH for every byte that is no part of a printable
/// character.
std::string printable(std::string_view text);

}  // namespace core
