#pragma once
// Converts a shard back to text: the body of `tokenize --decode`.
// Prints a shard for people: the bodies of `shard cat` and `shard head`.

#include "shard/dataset.h"
#include "text/documents/encode_shard.h"

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
std::optional<std::uint32_t> end_of_document_of(
    const shard::Dataset& data, const Tokenizer& tokenizer);

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

/// Prints the first `count` elements of the files (rows, for vectors), one per line, or with `raw`
/// as they are stored. Reads no further. Throws Error{no_input, bad_data, io}.
void print_elements(
    const std::vector<std::string>& paths, std::uint64_t count, bool raw, core::Output& out);

/// PrintOptions says what to print of shards.
struct PrintOptions {
  bool whole = true;  ///< everything, or only the first `count`
  /// The number of elements or rows to print, or of documents with `documents` or `text`.
  std::int64_t count = 10;
  bool documents = false, text = false, raw = false, names = false;
  void fields(core::FieldList& f);
};
/// Prints by one of the three functions above, or prints the names of documents, one per line.
/// Throws Error{usage} for options that exclude each other.
void print(const std::vector<std::string>& paths, const PrintOptions& options, core::Output& out);

}  // namespace text
