#pragma once
// WikiText's files: pages under titles, words and marks set apart by spaces. What is a page, how
// one undoes the spaces, and how many words it counts for are those of the task `wikitext` of
// lm-evaluation-harness, so that figures per word and per byte are its figures.

#include <cstdint>
#include <string>
#include <string_view>

namespace text {

/// Whether a page begins with this line (without its newline): ` = Title = `, and no ` = = Part = =
/// `.
bool is_wikitext_title(std::string_view line);

/// A page as it was written before it was cut into words: ` @-@ ` is `-`, a full stop stands at its
/// word, what is in brackets or quotes close to them.
std::string wikitext_detokenised(std::string_view page);

/// The pieces of a page between runs of white space (Unicode's), an empty one counted where it
/// begins or ends with such a run: 2 for "a b", 4 for " a b ".
std::uint64_t wikitext_words(std::string_view page);

}  // namespace text
