#pragma once
// page.css and page.js, as the build takes them in.

#include <string_view>

namespace page {

extern const std::string_view kPageStyle, kPageScript;

}  // namespace page
