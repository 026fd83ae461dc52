#pragma once
// Sizes and durations as people type and read them.

#include <cstdint>
#include <string>
#include <string_view>

namespace core {

/// A number of things: "64", "64K", "1.5M" (K, M, G, T: powers of 1000). Throws Error{usage}.
std::int64_t parse_count(std::string_view text);
/// A number of bytes: "64", "64K", "1.5G" (powers of 1024). Throws Error{usage}.
std::int64_t parse_size(std::string_view text);
/// 16000000 -> "16M", 65536 -> "65536", 0.5 -> "0.5": in the largest unit of which it is a whole
/// multiple below 10,000, else all digits. `unit` is 1000 or 1024.
std::string format_count(double number, std::int64_t unit = 1000);
/// "90", "15:00", "1:30:00" (seconds, M:S, H:M:S), up to 30 years, so that its nanoseconds are no
/// more than a clock counts. Throws Error{usage}.
double parse_duration_s(std::string_view text);
/// 1536 -> "1.5 KiB".
std::string format_bytes(double bytes);
/// 3723.0 -> "1:02:03".
std::string format_duration(double seconds);

}  // namespace core
