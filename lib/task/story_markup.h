#pragma once
// Lists characters that do not occur in a plain story.

#include <string_view>

namespace task {

/// Markup characters. A story with one of them is dropped; an opening ends before the word that has
/// one.
inline constexpr std::string_view kStoryMarkup = "[]{}()*#<>%^/@+\\|=_~`$&";

}  // namespace task
