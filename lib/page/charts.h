#pragma once
// Figures of an annotated text as SVG, in the colours of the page.

#include <string>

#include "page/annotated_text.h"

namespace page {

/// Mean loss along the text, in at most 80 stretches of equal length; a second line of what it is
/// compared with.
std::string loss_by_position(const AnnotatedText& text);

/// A square in the colour of a source.
std::string colour_key(std::size_t source);

/// What the sources gave: of each the mean share of the probability, and of the tokens that it gave
/// most how many there are and their mean loss. A table and bars; empty where no token has shares.
std::string loss_by_source(const AnnotatedText& text);

}  // namespace page
