#pragma once
// Converts a shard back to text: the body of `tokenize --decode`.

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

/// Writes each document's text, followed by nothing or the separator (text), or by a newline
/// (lines, wikitext), or as a JSON line with the member `field` (jsonl; bytes that are not UTF-8
/// become U+FFFD). `end_of_document` prints nothing. Throws Error{bad_data}.
void decode_documents(const shard::Dataset& data, const TokenizerPtr& tokenizer,
                      const DocumentOptions& options, std::optional<std::uint32_t> end_of_document,
                      core::ByteSink& out, const std::function<void(std::uint64_t)>& progress);

/// Returns the tokenizer `given` (a path, or `bytes`) or, if that is empty, the tokenizer in the
/// data. Throws Error{bad_data}, naming both fingerprints, if the data was made with another
/// tokenizer, and if there is none.
TokenizerPtr tokenizer_of(const shard::Dataset& data, const std::string& given = {});

/// Returns the id that the shard's program wrote after each document, according to the provenance;
/// else the tokenizer's own.
std::optional<std::uint32_t> end_of_document_of(const shard::Dataset& data,
                                                const Tokenizer& tokenizer);

/// A ShardText prints a shard according to options, for a program that needs its size beforehand.
/// It uses the tokenizer `given` or the shard's own, and omits the end-of-document token that
/// --end-of-document or the provenance names.
class ShardText {
 public:
  /// Opens and checks all inputs. Throws Error{bad_data} for kinds other than tokens and pairs, and
  /// as tokenizer_of() and end_of_document_id() do.
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
