#pragma once
// Writes an annotated text as a self-contained HTML page, or as JSON lines: the outputs of
// annotate.
// Draws the figures of an annotated text as SVG, in the colours of the page.
// Escapes untrusted text for a page.
// Declares the contents of page.css and page.js, which the build embeds.

#include "core/io.h"
#include "core/json.h"
#include "page/annotated_text.h"

namespace page {

extern const std::string_view kPageStyle, kPageScript;

/// Draws the mean loss along the text, in at most 80 intervals of equal length, and a second line
/// for the comparison.
std::string loss_by_position(const AnnotatedText& text);

/// Draws a table with bars: for each source, its mean fraction of the probability, and the number
/// and mean loss of the tokens for which it is the main source. Returns an empty text if no token
/// has shares.
std::string loss_by_source(const AnnotatedText& text);

/// Escapes `text` as the content of an element or a quoted attribute. Newlines and tabs stay; other
/// controls and bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// Writes JSON as the content of a script element, without any "<".
std::string script_json(const core::OrderedJson& json);

/// Writes a page. The text is readable without scripts; with scripts, a click or the arrow keys
/// show a token's loss and sources. Colours follow the reader's light or dark theme. The bytes
/// depend only on `text`.
void write_page(core::ByteSink& sink, const AnnotatedText& text);

/// Writes one JSON line per token: {"number", "text", "nats", "beside", "rank", "shares": {source:
/// share}, "likely": [{"text", "p"}], "contexts": [{"store", "document", "row", "share", "context",
/// "source"}]}. Unknown values are omitted; an infinite loss is null.
void write_lines(core::ByteSink& sink, const AnnotatedText& text);

}  // namespace page
