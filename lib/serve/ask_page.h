#pragma once
// Declares the contents of ask.html, the page at /, which the build embeds.

#include <string_view>

namespace serve {

extern const std::string_view kAskPage;

}  // namespace serve
