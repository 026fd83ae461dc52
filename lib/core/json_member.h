#pragma once
// A member of a JSON object as it stands there: its digits, the order of its own members, its
// spaces.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace core {

/// From where to where in the object's text a member's value is.
struct MemberPlace {
  std::size_t begin, end;
};
/// The value of the member `key` of an object that parse_json() takes; the last of that name.
/// Nothing if there is none.
std::optional<MemberPlace> member_place(std::string_view object, std::string_view key);

/// The text of the member `key` of an object that parse_json_line() takes; the last of that name.
/// Nothing if there is none.
std::optional<std::string> member_text(std::string_view object, std::string_view key);

/// An object's text, with a member before its others.
std::string with_member(std::string_view key, std::string_view value, std::string_view object);

}  // namespace core
