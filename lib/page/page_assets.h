#pragma once
// Declares the contents of page.css and page.js, which the build embeds.

#include "core/base.h"

namespace page {

extern const std::string_view kPageStyle, kPageScript;

}  // namespace page
