#pragma once
// Text of strangers inside a page.

#include <string>
#include <string_view>

#include "core/json.h"

namespace page {

/// As the text of an element or a quoted attribute: nothing in it is markup. Newlines and tabs
/// stay; other controls and what is no UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// As the content of a script element of JSON: no "<" in it.
std::string script_json(const core::OrderedJson& json);

}  // namespace page
