#include "core/units.h"

namespace core {
namespace {

double parse_number(std::string_view text, std::string_view whole, const char* what) {
  const auto value = read_number<double>(text);
  if (!value || !std::isfinite(*value)) bad_usage("'{}' is not {}", whole, what);
  return *value;
}

constexpr std::string_view kUnits = "KMGT";
constexpr auto is_decimal = [](char c) { return c >= '0' && c <= '9'; };

// Removes what people write in numbers for readers: a leading +, and underscores between digits.
std::string plain_digits(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && (is_decimal(text[1]) || text[1] == '.'))
    text.remove_prefix(1);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between =
        i > 0 && i + 1 < text.size() && is_decimal(text[i - 1]) && is_decimal(text[i + 1]);
    if (text[i] != '_' || !between) plain += text[i];
  }
  return plain;
}

// Removes a unit from the end of `digits` and returns its power, 0 without one.
int take_power(std::string_view& digits) {
  if (digits.empty() || digits.back() <= '9') return 0;
  const auto letter = kUnits.find(static_cast<char>(digits.back() & ~0x20));
  if (letter == kUnits.npos) return 0;
  digits.remove_suffix(1);
  return static_cast<int>(letter) + 1;
}

std::int64_t power_of(std::int64_t unit, int power) {
  std::int64_t factor = 1;
  while (power-- > 0) factor *= unit;
  return factor;
}

std::int64_t parse_whole(std::string_view text, std::int64_t unit) {
  constexpr const char* kWhat = "a number (write 4096, 64K, 2M, 1G)";
  const std::string plain = plain_digits(text);
  std::string_view digits = plain;
  if (unit == 1024 && digits.size() > 3 && digits.ends_with("iB")) digits.remove_suffix(2);
  const std::int64_t factor = power_of(unit, take_power(digits));
  if (const auto whole = read_number<std::int64_t>(digits)) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(*whole, factor, &result)) bad_usage("'{}' is too large", text);
    return result;
  }
  const double value = parse_number(digits, text, kWhat) * static_cast<double>(factor);
  // 1.1M is an integer, although 1.1 times a million is not one in binary.
  const double near = std::round(value);
  if (std::abs(value) > 9e18 || std::abs(value - near) > 1e-12 * std::abs(value))
    bad_usage("'{}' is not {}", text, kWhat);
  return static_cast<std::int64_t>(near);
}

}  // namespace

std::optional<std::vector<std::uint32_t>> read_ids(std::string_view text) {
  std::vector<std::uint32_t> ids;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const auto id = read_number<std::uint32_t>(word);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

std::vector<std::string> pieces(std::string_view text, char between) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string listed(std::span<const std::string> words, std::string_view conjunction) {
  if (words.size() < 2) return words.empty() ? "" : words[0];
  const auto last = words.size() - 1;
  return fmt::format("{} {} {}", fmt::join(words.first(last), ", "), conjunction, words[last]);
}

std::int64_t parse_count(std::string_view text) { return parse_whole(text, 1000); }
std::int64_t parse_size(std::string_view text) { return parse_whole(text, 1024); }

double parse_real(std::string_view text) {
  const std::string plain = plain_digits(text);
  std::string_view digits = plain;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  const int power = take_power(digits);
  const auto value = read_number<double>(digits);
  if (!value || std::isnan(*value)) bad_usage("'{}' is not a number", text);
  if (percent) bad_usage("'{}' is not a number; write {}", text, *value / 100);
  return *value * static_cast<double>(power_of(1000, power));
}

std::string counted(std::uint64_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

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
  constexpr const char* kWhat = "a duration (write 90, 15:00, 1:30:00 or 1h30m)";
  constexpr double kMostSeconds = 30 * 365.25 * 86'400;
  constexpr std::string_view kLetters = "dhms";
  constexpr std::array kSecondsOf = {86'400.0, 3600.0, 60.0, 1.0};
  double seconds = 0;
  if (!text.empty() && kLetters.find(text.back()) != kLetters.npos) {
    std::size_t least = 0;  // units come in this order, each once
    for (std::string_view rest = text; !rest.empty();) {
      const auto at = rest.find_first_of(kLetters);
      const auto letter = at == rest.npos ? at : kLetters.find(rest[at]);
      if (at == rest.npos || letter < least) bad_usage("'{}' is not {}", text, kWhat);
      const double value = parse_number(rest.substr(0, at), text, kWhat);
      if (value < 0) bad_usage("'{}' is not {}", text, kWhat);
      seconds += value * kSecondsOf[letter];
      if (seconds > kMostSeconds) bad_usage("'{}' is more than 30 years", text);
      least = letter + 1;
      rest.remove_prefix(at + 1);
    }
    return seconds;
  }
  std::string_view rest = text;
  for (int part = 0;; ++part) {
    const auto colon = rest.find(':');
    const double value = parse_number(rest.substr(0, colon), text, kWhat);
    if (part > 2 || value < 0) bad_usage("'{}' is not {}", text, kWhat);
    seconds = seconds * 60 + value;
    if (seconds > kMostSeconds) bad_usage("'{}' is more than 30 years", text);
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
