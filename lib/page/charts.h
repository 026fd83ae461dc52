#pragma once
// Draws the figures of an annotated text as SVG, in the colours of the page.
// Escapes untrusted text for a page.

#include "core/json.h"
#include "page/annotated_text.h"

namespace page {

/// Draws the mean loss along the text, in at most 80 intervals of equal length, and a second line
/// for the comparison.
std::string loss_by_position(const AnnotatedText& text);

/// Draws a square in the colour of a source.
std::string colour_key(std::size_t source);

/// Draws a table with bars: for each source, its mean fraction of the probability, and the number
/// and mean loss of the tokens for which it is the main source. Returns an empty text if no token
/// has shares.
std::string loss_by_source(const AnnotatedText& text);

/// Escapes `text` as the content of an element or a quoted attribute. Newlines and tabs stay; other
/// controls and bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// Writes JSON as the content of a script element, without any "<".
std::string script_json(const core::OrderedJson& json);

}  // namespace page
