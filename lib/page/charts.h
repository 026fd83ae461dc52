#pragma once
// Draws the figures of an annotated text as SVG, in the colours of the page.

#include <string>

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

}  // namespace page
