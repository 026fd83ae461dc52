#include "core/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace core {
namespace {

double parse_number(std::string_view text, std::string_view whole, const char* what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() ||
      !std::isfinite(value))
    fail(Code::usage, "'{}' is not {}", whole, what);
  return value;
}

constexpr std::string_view kUnits = "KMGT";

std::int64_t power_of(std::int64_t unit, int power) {
  std::int64_t factor = 1;
  while (power-- > 0) factor *= unit;
  return factor;
}

std::int64_t parse_whole(std::string_view text, std::int64_t unit) {
  constexpr const char* kWhat = "a number (write 4096, 64K, 2M, 1G)";
  std::string_view digits = text;
  int power = 0;
  if (!digits.empty()) {
    const auto letter = kUnits.find(static_cast<char>(digits.back() & ~0x20));
    if (letter != kUnits.npos && digits.back() > '9') {
      power = static_cast<int>(letter) + 1;
      digits.remove_suffix(1);
    }
  }
  const std::int64_t factor = power_of(unit, power);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error == std::errc{} && end == digits.data() + digits.size() && !digits.empty()) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(whole, factor, &result))
      fail(Code::usage, "'{}' is too large", text);
    return result;
  }
  const double value = parse_number(digits, text, kWhat) * static_cast<double>(factor);
  // 1.1M is an integer, although 1.1 times a million is not one in binary.
  const double near = std::round(value);
  if (std::abs(value) > 9e18 || std::abs(value - near) > 1e-12 * std::abs(value))
    fail(Code::usage, "'{}' is not {}", text, kWhat);
  return static_cast<std::int64_t>(near);
}

}  // namespace

std::int64_t parse_count(std::string_view text) { return parse_whole(text, 1000); }
std::int64_t parse_size(std::string_view text) { return parse_whole(text, 1024); }

std::string format_count(double number, std::int64_t unit) {
  if (number != std::floor(number) || std::abs(number) > 9e18) return fmt::format("{}", number);
  constexpr std::int64_t kMostOfUnit = 9999;
  const auto whole = static_cast<std::int64_t>(number);
  for (int power = static_cast<int>(kUnits.size()); whole != 0 && power > 0; --power) {
    const std::int64_t multiple = whole / power_of(unit, power);
    if (whole % power_of(unit, power) == 0 && std::abs(multiple) <= kMostOfUnit)
      return fmt::format("{}{}", multiple, kUnits[static_cast<std::size_t>(power) - 1]);
  }
  return std::to_string(whole);
}

double parse_duration_s(std::string_view text) {
  constexpr const char* kWhat = "a duration (write 90, 15:00 or 1:30:00)";
  constexpr double kMostSeconds = 30 * 365.25 * 86'400;
  double seconds = 0;
  std::string_view rest = text;
  for (int part = 0;; ++part) {
    const auto colon = rest.find(':');
    const double value = parse_number(rest.substr(0, colon), text, kWhat);
    if (part > 2 || value < 0) fail(Code::usage, "'{}' is not {}", text, kWhat);
    seconds = seconds * 60 + value;
    if (seconds > kMostSeconds) fail(Code::usage, "'{}' is more than 30 years", text);
    if (colon == rest.npos) return seconds;
    rest.remove_prefix(colon + 1);
  }
}

std::string format_bytes(double bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int power = 0;
  while (bytes >= 1024 && power < 4) bytes /= 1024, ++power;
  return power == 0 ? fmt::format("{:.0f} B", bytes)
                    : fmt::format("{:.1f} {}", bytes, kNames[power]);
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, std::round(seconds)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace core
