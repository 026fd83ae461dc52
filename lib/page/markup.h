#pragma once
// Escapes untrusted text for a page.

#include <string>
#include <string_view>

#include "core/json.h"

namespace page {

/// Escapes `text` as the content of an element or a quoted attribute. Newlines and tabs stay; other
/// controls and bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// Writes JSON as the content of a script element, without any "<".
std::string script_json(const core::OrderedJson& json);

}  // namespace page
