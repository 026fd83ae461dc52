#pragma once
// An annotated text as one page of HTML that needs nothing else, or as lines: annotate's output.

#include "core/io.h"
#include "page/annotated_text.h"

namespace page {

/// The text is there without scripts too; with them a click, or the arrow keys, tell of a token
/// what it cost and who gave it. Colours follow the reader's dark or light. Bytes depend on `text`
/// alone.
void write_page(core::ByteSink& sink, const AnnotatedText& text);

/// A JSON line a token: {"number", "text", "nats", "beside", "rank", "shares": {source: share},
/// "likely": [{"text", "p"}], "contexts": [{"store", "document", "row", "share", "context",
/// "source"}]}; what is not known is left out, a loss that is infinite is null.
void write_lines(core::ByteSink& sink, const AnnotatedText& text);

}  // namespace page
