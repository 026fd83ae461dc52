#include "text/tokenizer/digit_groups.h"

#include <charconv>
#include <initializer_list>

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

// Reads a pattern from left to right.
class PatternReader {
 public:
  explicit PatternReader(std::string_view rest) : rest_(rest) {}
  bool done() const { return rest_.empty(); }
  bool take(std::string_view part) {
    const bool found = rest_.starts_with(part);
    if (found) rest_.remove_prefix(part.size());
    return found;
  }
  bool take_one(std::initializer_list<std::string> parts) {
    for (const std::string& part : parts)
      if (take(part)) return true;
    return false;
  }
  bool take_number(std::size_t& number) {
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{} || number == 0 || number > 1000) return false;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

struct DigitNames {
  DigitGroups::Digits digits;
  const char* yes;
  const char* no;
};
constexpr DigitNames kDigitNames[] = {
    {DigitGroups::Digits::number, R"(\p{N})", R"(\P{N})"},
    {DigitGroups::Digits::number, R"(\p{N})", R"([^\p{N}])"},
    {DigitGroups::Digits::decimal, R"(\p{Nd})", R"(\P{Nd})"},
    {DigitGroups::Digits::decimal, R"(\p{Nd})", R"([^\p{Nd}])"},
    {DigitGroups::Digits::decimal, R"(\d)", R"(\D)"},
    {DigitGroups::Digits::decimal, R"(\d)", R"([^\d])"},
    {DigitGroups::Digits::ascii, "[0-9]", "[^0-9]"},
};

std::optional<DigitGroups> read_groups(std::string_view pattern, const DigitNames& names) {
  const std::string yes = names.yes, no = names.no;
  DigitGroups groups;
  groups.digits = names.digits;
  PatternReader reader(pattern);
  groups.places = reader.take("(?=");
  std::size_t again = 0;
  if (!groups.places &&
      !(reader.take(yes + "{1,") && reader.take_number(groups.size) && reader.take("}(?=")))
    return std::nullopt;
  if (!reader.take_one({"(?:", "(?>", "("}) || !reader.take(yes + "{") ||
      !reader.take_number(again) || !reader.take(groups.places ? "})+" : "})*"))
    return std::nullopt;
  if (groups.places) groups.size = again;
  if (again != groups.size) return std::nullopt;
  const std::string end[] = {no + "|$)", "$|" + no + ")"};
  // A number that is no decimal digit may be outside \w.
  if (names.digits != DigitGroups::Digits::number && reader.take(R"(\b)")) {
    groups.word_border = true;
  } else if (!reader.take_one(
                 {"(?!" + yes + ")", "(?:" + end[0], "(?:" + end[1], "(" + end[0], "(" + end[1]})) {
    return std::nullopt;
  }
  if (!reader.take(")")) return std::nullopt;
  groups.others = !groups.places && reader.take("|" + no + "+");
  return reader.done() ? std::optional(groups) : std::nullopt;
}

}  // namespace

bool DigitGroups::is_digit(std::uint32_t code_point) const {
  if (code_point < 0x80) return code_point - '0' < 10;
  switch (digits) {
    case Digits::number: return class_of(code_point) == CharClass::number;
    case Digits::decimal:
      return class_of(code_point) == CharClass::number && is_decimal(code_point);
    case Digits::ascii: break;
  }
  return false;
}

DigitGroups::Number DigitGroups::find(const char* p, const char* end) const {
  Number number{end, end, 0};
  for (; p < end;) {
    const Char c = decode_char(p, end);
    if (is_digit(c.code_point)) {
      if (number.digits++ == 0) number.begin = p;
    } else if (number.digits > 0) {
      number.end = p;
      break;
    }
    p += c.bytes;
  }
  return number;
}

bool DigitGroups::splits_at(const char* p, const char* end) const {
  return !word_border || p == end || !is_word_char(decode_char(p, end).code_point);
}

const char* DigitGroups::skip(const char* p, const char* end, std::size_t n) {
  for (; n > 0 && p < end; --n) p += decode_char(p, end).bytes;
  return p;
}

const char* DigitGroups::last_certain_end(const char* begin, const char* end) const {
  const auto digit_before = [&](const char*& p) {
    const char* const before = previous_char(begin, p);
    if (!is_digit(decode_char(before, p).code_point)) return false;
    p = before;
    return true;
  };
  // Returns the number that `end` may cut.
  const char* p = end;
  while (p > begin && digit_before(p)) {}
  if (!places && !word_border && p > begin && p < end) return p;
  while (p > begin) {
    while (p > begin && !is_digit(decode_char(previous_char(begin, p), p).code_point))
      p = previous_char(begin, p);
    if (p == begin) break;
    const char* const stop = p;
    std::size_t n = 0;
    while (p > begin && digit_before(p)) ++n;
    const bool splits = stop < end && splits_at(stop, end);
    // A cut after a number would create a word boundary.
    if (!places && (splits || (others && !word_border))) return stop < end ? stop : nullptr;
    if (places && splits && n >= size) {
      const char* const last = skip(p, stop, n - size);
      if (last > begin) return last;
    }
  }
  return nullptr;
}

std::optional<DigitGroups> digit_groups_of(std::string_view pattern) {
  for (const DigitNames& names : kDigitNames)
    if (const auto groups = read_groups(pattern, names)) return groups;
  return std::nullopt;
}

}  // namespace text
