#pragma once
// ask.html, as the build takes it in: the page at /, on which a person asks.

#include <string_view>

namespace serve {

extern const std::string_view kAskPage;

}  // namespace serve
