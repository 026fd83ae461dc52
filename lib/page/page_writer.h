#pragma once
// Writes an annotated text as a self-contained HTML page, or as JSON lines: the outputs of
// annotate.

#include "core/io.h"
#include "page/annotated_text.h"

namespace page {

/// Writes a page. The text is readable without scripts; with scripts, a click or the arrow keys
/// show a token's loss and sources. Colours follow the reader's light or dark theme. The bytes
/// depend only on `text`.
void write_page(core::ByteSink& sink, const AnnotatedText& text);

/// Writes one JSON line per token: {"number", "text", "nats", "beside", "rank", "shares": {source:
/// share}, "likely": [{"text", "p"}], "contexts": [{"store", "document", "row", "share", "context",
/// "source"}]}. Unknown values are omitted; an infinite loss is null.
void write_lines(core::ByteSink& sink, const AnnotatedText& text);

}  // namespace page
