#pragma once
// From a shard back to text: the body of `tokenize --decode`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io.h"
#include "shard/dataset.h"
#include "text/documents/documents.h"
#include "text/documents/encode_shard.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// Writes each document's text: after it nothing (text; or the separator, if there is one), a
/// newline (lines, wikitext), or as a JSON line with the member `field` (jsonl: bytes that are not
/// UTF-8 become U+FFFD). `end_of_document` prints nothing. Throws Error{bad_data}.
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

/// A shard as options say it is printed: by the tokenizer `given` or its own, without the mark that
/// --end-of-document names or its provenance does. For a program that knows the size beforehand.
class ShardText {
 public:
  /// Opens and checks all there is. Throws Error{bad_data} for another kind than tokens and pairs,
  /// and as tokenizer_of() and end_of_document_id() do.
  ShardText(const std::vector<std::string>& files, const std::string& given, TextOptions options);
  std::uint64_t tokens() const { return data_.size(); }
  void write(core::ByteSink& out, const std::function<void(std::uint64_t)>& progress) const;

 private:
  shard::Dataset data_;
  TextOptions options_;
  TokenizerPtr tokenizer_;
  std::optional<std::uint32_t> end_of_document_;
};

}  // namespace text
