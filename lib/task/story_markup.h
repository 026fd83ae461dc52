#pragma once
// What stands in no plain story.

#include <string_view>

namespace task {

/// Characters of markup: a story with one of them is dropped, an opening ends before its word.
inline constexpr std::string_view kStoryMarkup = "[]{}()*#<>%^/@+\\|=_~`$&";

}  // namespace task
