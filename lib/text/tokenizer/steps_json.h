#pragma once
// Writes the parts of a canonical tokenizer.json around the model: added tokens, normalizer,
// splitters, template.

#include "text/tokenizer/json_text.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"

namespace text {

/// Writes "added_tokens": all of `steps` if it has any, else the special ones.
void append_added_tokens(
    JsonText& json, const TextSteps& steps, const std::vector<SpecialToken>& special);
/// Returns which ids are not in "vocab": added tokens that it did not list, and nameless tokens.
std::vector<bool> outside_vocabulary(const TextSteps& steps, const Vocabulary& vocabulary);
/// Writes "normalizer": null, a step or a sequence of steps.
void append_normalizer(JsonText& json, const Normalizer& normalizer);
/// Writes "pre_tokenizer" of a tokenizer.model for other readers of the file: the prefix that a
/// text gets once, and a split at the pattern of the symbols.
void append_rules_split(JsonText& json, const TextSteps& steps, const std::string& pattern);
/// Writes one step of a pre-tokenizer.
void append_split_step(JsonText& json, const SplitStep& step);
/// Writes "post_processor": null or the template.
void append_template(JsonText& json, const Tokenizer& tokenizer);

}  // namespace text
