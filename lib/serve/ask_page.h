#pragma once
// Declares the contents of ask.html, the page at /, which the build embeds.

#include "core/base.h"

namespace serve {

extern const std::string_view kAskPage;

}  // namespace serve
