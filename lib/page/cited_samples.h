#pragma once
// Reads the output of `sample --cite --json` as an annotated text.

#include <string_view>

#include "page/annotated_text.h"

namespace page {

/// Adds one line of that output: the prompt as one token without a score, then the tokens of the
/// continuation with their contexts. The first line sets the text's sources: the model and the
/// cited memories. `origin` names the line in messages. Throws Error{bad_data} for any other line
/// and for a line without citations.
void add_sample(AnnotatedText& text, std::string_view line, const std::string& origin);

}  // namespace page
