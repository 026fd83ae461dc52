#pragma once
// Extracts a member of a JSON object verbatim: its digits, the order of its own members, its
// spaces.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace core {

/// A MemberPlace is the byte range [begin, end) of a member's value in the object's text.
struct MemberPlace {
  std::size_t begin, end;
};
/// Finds the value of the member `key` in an object that parse_json() accepts. If the name occurs
/// more than once, the last member wins. Returns nothing if there is none.
std::optional<MemberPlace> member_place(std::string_view object, std::string_view key);

/// Returns the text of the member `key` in an object that parse_json_line() accepts. If the name
/// occurs more than once, the last member wins. Returns nothing if there is none.
std::optional<std::string> member_text(std::string_view object, std::string_view key);

/// Returns the text of an object with one more member in front of its others.
std::string with_member(std::string_view key, std::string_view value, std::string_view object);

}  // namespace core
