#pragma once
// Sizes and durations as people type and read them.

#include <cstdint>
#include <string>
#include <string_view>

namespace core {

/// "64", "64K", "1.5G" (K, M, G, T: powers of 1024). Throws Error{usage}.
std::int64_t parse_size(std::string_view text);
/// "90", "15:00", "1:30:00" (seconds, M:S, H:M:S). Throws Error{usage}.
double parse_duration_s(std::string_view text);
/// 1536 -> "1.5 KiB".
std::string format_bytes(double bytes);
/// 3723.0 -> "1:02:03".
std::string format_duration(double seconds);

}  // namespace core
