#pragma once
// Makes untrusted text (names of files, their contents) safe to print on a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace core {

/// Returns the number of bytes of the first character of `text` (not empty) if it is printable:
/// ASCII from the space on, or UTF-8 other than the controls U+0080-9F. Returns 0 otherwise.
std::size_t printable_length(std::string_view text);

/// Returns `text` as one line without control sequences: every byte that is not part of a printable
/// character becomes \xHH.
std::string printable(std::string_view text);

}  // namespace core
