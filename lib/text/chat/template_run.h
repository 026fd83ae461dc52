#pragma once
// Runs a parsed chat template.

#include <ctime>
#include <string>

#include "text/chat/template_calls.h"
#include "text/chat/template_tree.h"

namespace text::chat {

/// Returns the template's output. Throws Error{bad_data}, naming origin and line.
std::string run_template(const Block& block, const Dict& variables, Work work, std::time_t now,
                         const std::string& origin);

}  // namespace text::chat
