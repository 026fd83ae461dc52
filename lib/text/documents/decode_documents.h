#pragma once
// From a shard back to text: the body of `tokenize --decode`.

#include <functional>
#include <optional>
#include <string>

#include "core/io.h"
#include "shard/dataset.h"
#include "text/documents/documents.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// Writes each document's text: after it nothing (text; or the separator, if there is one), a
/// newline (lines), or as a JSON line with the member `field` (jsonl: bytes that are not UTF-8
/// become U+FFFD). `end_of_document` prints nothing. Throws Error{bad_data}.
void decode_documents(const shard::Dataset& data, const TokenizerPtr& tokenizer,
                      const DocumentOptions& options, std::optional<std::uint32_t> end_of_document,
                      core::ByteSink& out, const std::function<void(std::uint64_t)>& progress);

/// The tokenizer in the data, or, where one is `given` (a path, or `bytes`), that one. Throws
/// Error{bad_data} naming both fingerprints if the data were made by another, or if none is there.
TokenizerPtr tokenizer_of(const shard::Dataset& data, const std::string& given = {});

/// The id that the program which made the shard wrote after documents, as its provenance says;
/// the tokenizer's own if it says nothing.
std::optional<std::uint32_t> end_of_document_of(const shard::Dataset& data,
                                                const Tokenizer& tokenizer);

}  // namespace text
