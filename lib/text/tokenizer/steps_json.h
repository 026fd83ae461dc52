#pragma once
// The parts of a canonical tokenizer.json around the model: added tokens, normalizer, splitters,
// template.

#include "text/tokenizer/json_text.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// "added_tokens": all of `steps` if it has any, else the special ones.
void append_added_tokens(JsonText& json, const TextSteps& steps,
                         const std::vector<SpecialToken>& special);
/// Ids that do not stand in "vocab": added tokens that it did not list, and nameless ones.
std::vector<bool> outside_vocabulary(const TextSteps& steps, const Vocabulary& vocabulary);
/// "normalizer": null, a step or a sequence of them.
void append_normalizer(JsonText& json, const Normalizer& normalizer);
/// One step of a pre-tokenizer.
void append_split_step(JsonText& json, const SplitStep& step);
/// "post_processor": null or the template.
void append_template(JsonText& json, const Tokenizer& tokenizer);

}  // namespace text
