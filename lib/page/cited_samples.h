#pragma once
// What `sample --cite --json` writes, as an annotated text.

#include <string_view>

#include "page/annotated_text.h"

namespace page {

/// Adds a line of it: the prompt, whose tokens are not scored and stand as one, and the tokens of
/// the continuation with their contexts. The first line gives the text its sources: the model, and
/// what is cited. `origin` names the line. Throws Error{bad_data} for what is no such line, or has
/// no citations.
void add_sample(AnnotatedText& text, std::string_view line, const std::string& origin);

}  // namespace page
