#include "core/json_member.h"

#include <fmt/format.h>

#include <cstddef>

#include "core/json.h"
#include "core/json_line.h"

namespace core {
namespace {

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
