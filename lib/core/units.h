#pragma once
// Parses and formats sizes and durations for people, and numbers of other programs.

#include <charconv>

#include "core/base.h"

namespace core {

/// Returns the number that the whole text is, as std::from_chars() reads it; nothing for any other
/// text and for a number that a T does not hold.
template <class T> std::optional<T> read_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}
/// Returns the token ids of a text, which are separated by spaces; nothing for any other text.
std::optional<std::vector<std::uint32_t>> read_ids(std::string_view text);

/// Splits a text at each `between`.
std::vector<std::string> pieces(std::string_view text, char between);

/// Joins words: "a", "a and b", "a, b and c" with "and" as the conjunction.
std::string listed(std::span<const std::string> words, std::string_view conjunction);

/// Parses a count: "64", "64K", "1.5M" (K, M, G, T: powers of 1000). As in parse_size() and
/// parse_real(), a leading + and underscores between digits have no meaning. Throws Error{usage}.
std::int64_t parse_count(std::string_view text);
/// Parses a number of bytes: "64", "64K", "1.5G", "2GiB" (powers of 1024). Throws Error{usage}.
std::int64_t parse_size(std::string_view text);
/// Parses a number: "0.5", "1e-3", "2K" (powers of 1000), "inf". Throws Error{usage}, which for a
/// percentage says what to write.
double parse_real(std::string_view text);
/// Formats a count of things: "1 document", "2 documents".
std::string counted(std::uint64_t n, std::string_view thing);
/// Formats a number: 16000000 -> "16M", 65536 -> "65536", 0.5 -> "0.5". Uses the largest unit in
/// which the number is an integer below 10,000, else writes all digits. `unit` is 1000 or 1024.
std::string format_count(double number, std::int64_t unit = 1000);
/// Parses a duration of at most 30 years into seconds: "90", "15:00", "1:30:00" (seconds, M:S,
/// H:M:S), "2h", "1h30m" (d, h, m, s). The bound keeps its nanoseconds within a clock's range.
/// Throws Error{usage}.
double parse_duration_s(std::string_view text);
/// Formats a number of bytes: 1536 -> "1.5 KiB".
std::string format_bytes(double bytes);
/// Formats a duration: 3723.0 -> "1:02:03".
std::string format_duration(double seconds);

}  // namespace core
