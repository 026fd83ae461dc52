#include "core/json_line.h"

#include <charconv>

#include "core/plain_text.h"

namespace core {
namespace {

constexpr int kMaxDepth = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the length of the JSON number at the start of `text`; 0 if there is none.
std::size_t number_bytes(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - begin;
  };
  const auto next_is = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != any.npos;
  };
  if (next_is("-")) ++at;
  const bool zero = next_is("0");
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return 0;
  if (next_is(".")) {
    ++at;
    if (digits() == 0) return 0;
  }
  if (next_is("eE")) {
    ++at;
    if (next_is("+-")) ++at;
    if (digits() == 0) return 0;
  }
  return at;
}

bool is_too_large(std::string_view number) {
  const char* const end = number.data() + number.size();
  if (number.find_first_of(".eE") == number.npos) {
    std::int64_t with_sign;
    std::uint64_t without;
    return std::from_chars(number.data(), end, with_sign).ec != std::errc() &&
           std::from_chars(number.data(), end, without).ec != std::errc();
  }
  return std::isinf(std::strtod(std::string(number).c_str(), nullptr));
}

// Returns the code unit of the \uXXXX at the start of `text`; -1 if there is none.
int code_unit(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  int unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return error == std::errc() && end == text.data() + 6 && unit >= 0 ? unit : -1;
}

bool is_high(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

class Mender {
 public:
  Mender(std::string_view line, bool infinite) : line_(line), infinite_(infinite) {
    made_.text.reserve(line.size() + 16);
  }

  MendedJson mend() {
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == '"') {
        string();
      } else if (c == '-' || is_digit(c)) {
        number();
      } else if (!constant("NaN") && !constant("Infinity")) {
        copy(1);
      }
    }
    return std::move(made_);
  }

 private:
  void copy(std::size_t n) {
    made_.text += line_.substr(at_, n);
    at_ += std::min(n, line_.size() - at_);
  }

  bool constant(std::string_view name) {
    if (!line_.substr(at_).starts_with(name)) return false;
    const bool number = infinite_ && name == "Infinity";
    made_.numbers |= number;
    if (made_.constant.empty() && !number) made_.constant = name;
    made_.text += number ? "9e307" : "null";
    at_ += name.size();
    return true;
  }

  void number() {
    if (constant("-Infinity")) return;
    const std::size_t n = number_bytes(line_.substr(at_));
    const std::string_view number = line_.substr(at_, n);
    if (n == 0 || !is_too_large(number)) return copy(std::max<std::size_t>(n, 1));
    made_.text += number[0] == '-' ? "-9e307" : "9e307";
    made_.numbers = true;
    at_ += n;
  }

  void string() {
    copy(1);
    while (at_ < line_.size() && line_[at_] != '"') {
      if (line_[at_] == '\\') {
        escape();
      } else if (const std::size_t end = std::min(line_.find_first_of("\"\\", at_), line_.size());
                 true) {
        characters(line_.substr(at_, end - at_));
      }
    }
    copy(1);
  }

  void escape() {
    const int unit = code_unit(line_.substr(at_));
    if (is_high(unit) && is_low(code_unit(line_.substr(at_ + 6)))) return copy(12);
    if (!is_high(unit) && !is_low(unit)) return copy(2);
    made_.surrogates.push_back(made_.text.size());
    made_.text += "\\ufffd";
    at_ += 6;
  }

  void characters(std::string_view text) {
    const std::size_t good = utf8_length(text);
    if (good < text.size() && made_.not_utf8.empty())
      made_.not_utf8 = what_is_not_utf8(line_, at_ + good);
    std::uint64_t replaced = 0;
    made_.text += good < text.size() ? with_replacements(text, replaced) : std::string(text);
    at_ += text.size();
  }

  std::string_view line_;
  bool infinite_;
  std::size_t at_ = 0;
  MendedJson made_;
};

constexpr std::string_view kSpaces = " \t\r\n";

// Skips the string that begins at `at`.
std::size_t past_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

// Finds the comma or bracket that ends the value at `at`.
std::size_t past_value(std::string_view text, std::size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = past_string(text, at) - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == '}')) {
      break;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return at;
}

// Parses a member's name from its text with quotes.
std::string name_of(std::string_view text) {
  Json name = Json::parse(text, nullptr, false);
  if (name.is_discarded()) name = Json::parse(mend_json(text).text, nullptr, false);
  return name.is_string() ? name.get<std::string>() : std::string();
}

}  // namespace

MendedJson mend_json(std::string_view line, bool infinite) { return Mender(line, infinite).mend(); }

bool has_surrogate(const MendedJson& mended, std::string_view key) {
  if (mended.surrogates.empty()) return false;
  const auto place = member_place(mended.text, key);
  return place && std::ranges::any_of(mended.surrogates,
                      [&](auto at) { return at >= place->begin && at < place->end; });
}

std::string why_no_surrogate(std::string_view key) {
  return fmt::format("\"{}\" has an unpaired surrogate (\\ud800 to \\udfff)", key);
}

std::string why_no_constant(std::string_view constant) {
  return fmt::format("{} is not JSON, though Python's json.dump writes it", constant);
}

bool is_named_json_lines(std::string_view path) {
  for (const std::string_view packed : {".zst", ".gz", ".xz", ".bz2"}) {
    if (!path.ends_with(packed)) continue;
    path.remove_suffix(packed.size());
    break;
  }
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

Json parse_json_line(
    std::string_view line, const std::string& origin, const std::vector<std::string_view>& used) {
  try {
    return parse_json(line, origin, kMaxDepth);
  } catch (const Error& error) {
    const MendedJson mended = mend_json(line);
    if (!mended.any()) throw;
    Json json = parse_json(mended.text, origin, kMaxDepth);
    if (!mended.constant.empty())
      bad_data("{}: {}; write null or leave it out", origin, why_no_constant(mended.constant));
    if (!mended.not_utf8.empty()) bad_data("{}: {}", origin, mended.not_utf8);
    for (const auto key : used)
      if (has_surrogate(mended, key))
        bad_data("{}: {}; write U+FFFD for it", origin, why_no_surrogate(key));
    return json;
  }
}

std::optional<MemberPlace> member_place(std::string_view object, std::string_view key) {
  std::optional<MemberPlace> found;
  std::size_t at = object.find('{') + 1;
  while ((at = object.find_first_not_of(kSpaces, at)) < object.size() && object[at] == '"') {
    const std::size_t name_end = past_string(object, at);
    const std::string name = name_of(object.substr(at, name_end - at));
    const std::size_t value = object.find_first_not_of(kSpaces, object.find(':', name_end) + 1);
    const std::size_t end = past_value(object, value);
    if (name == key) {
      const std::string_view text = object.substr(value, end - value);
      found = {value, value + text.find_last_not_of(kSpaces) + 1};
    }
    at = end + 1;
  }
  return found;
}

std::optional<std::string> member_text(std::string_view object, std::string_view key) {
  const auto place = member_place(object, key);
  if (!place) return std::nullopt;
  const std::string_view text = object.substr(place->begin, place->end - place->begin);
  // jq and others refuse unpaired surrogates.
  MendedJson mended;
  if (text.find("\\u") != text.npos) mended = mend_json(text);
  return mended.surrogates.empty() ? std::string(text) : mended.text;
}

std::string with_member(std::string_view key, std::string_view value, std::string_view object) {
  const std::string_view rest = object.substr(object.find('{') + 1);
  return fmt::format("{{\"{}\":{}{}{}", key, value, rest.starts_with('}') ? "" : ",", rest);
}

}  // namespace core
