#pragma once
// Converts token files of other programs (shard/array_file.h) to a shard: the body of `shard
// import`.

#include "shard/array_file.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// MarkAt is the position of a document's mark, the token that separates documents.
enum class MarkAt {
  by_data,  ///< first if the first file begins with the mark, else last
  first,
  last
};

/// ImportTokensOptions says how the files are read.
struct ImportTokensOptions {
  /// Unset: detected for each file.
  std::optional<shard::ArrayFormat> format;
  TokenizerPtr tokenizer;             ///< the tokenizer of the ids; may be null
  std::uint64_t vocabulary = 0;       ///< without a tokenizer: the bound of the ids
  std::optional<std::uint64_t> mark;  ///< the id that separates documents
  MarkAt mark_at = MarkAt::by_data;
  int jobs = 1;
};

/// ImportRequest holds the flags that make ImportTokensOptions.
struct ImportRequest {
  std::string format = "auto", tokenizer, end_of_document, mark = "auto";
  std::int64_t vocabulary = 0;
  void fields(core::FieldList& f);

  /// Loads the tokenizer and returns the options. Throws Error{usage} for options that contradict
  /// each other, and as load_tokenizer() and end_of_document_id() do.
  ImportTokensOptions resolve(int jobs) const;
};

/// ImportTotals holds the counts of an import.
struct ImportTotals {
  std::uint64_t documents = 0, elements = 0;
  std::uint64_t joined = 0;  ///< Megatron's sequences beyond one per document
  core::Digest fingerprint;

  core::OrderedJson figures() const;
  std::string summary() const;  ///< returns the figures in one line
};

/// Writes the numbers of all files (no path or "-" is stdin) as one shard: ids as tokens, vectors
/// as vectors. In a two-dimensional array of ids, each row is a document. Megatron's index lists
/// its documents. In other files the mark separates documents, even across files; without a mark,
/// each file is one document. With a tokenizer, a document's bytes and words are those of its
/// decoded text (for word tokenizers, the tokens without marks); without one they are 0. `progress`
/// receives the count of numbers done so far. Throws Error{bad_data}, naming file and position, for
/// an id beyond the vocabulary, and Error{usage} for ids without tokenizer and vocabulary.
ImportTotals import_tokens(const std::vector<std::string>& paths,
    const ImportTokensOptions& options, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress);

}  // namespace text
