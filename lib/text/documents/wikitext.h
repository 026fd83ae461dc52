#pragma once
// Reads WikiText's files, which consist of pages with titles, and words and punctuation separated
// by spaces. Page boundaries, detokenisation and word counts follow the task `wikitext` of
// lm-evaluation-harness, so that figures per word and per byte are comparable with it.

#include "core/base.h"

namespace text {

/// Returns true if a page begins with this line (without its newline): ` = Title = `, but not ` = =
/// Part = = `.
bool is_wikitext_title(std::string_view line);

/// Undoes the tokenisation of a page: ` @-@ ` becomes `-`, and full stops, brackets and quotes are
/// attached to their words.
std::string wikitext_detokenised(std::string_view page);

/// Returns the number of pieces between runs of Unicode white space. A run at the beginning or end
/// adds an empty piece: 2 for "a b", 4 for " a b ".
std::uint64_t wikitext_words(std::string_view page);

}  // namespace text
