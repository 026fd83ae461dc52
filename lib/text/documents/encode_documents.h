#pragma once
// Encodes documents into a shard: the body of `tokenize`.
// Splits a JSON line into pieces that are context and pieces that are learned.

#include "shard/writer.h"
#include "text/documents/documents.h"
#include "text/tokenizer/special_text.h"

namespace text {

/// A Piece is a part of a document that is encoded separately: no token crosses its ends.
struct Piece {
  std::string text;
  bool learned;
};

/// A LinePieces returns the consecutive pieces of a line's object. `origin`, file and line, begins
/// its messages. Throws Error{bad_data}.
using LinePieces =
    std::function<std::vector<Piece>(const core::OrderedJson& line, const std::string& origin)>;

/// Returns a function for {"prompt", "completion"}, in which the completion is learned.
LinePieces completion_pieces();
/// Returns a function for {"segments": [{"text", "label"}, ...]}, in which the segments with a true
/// label are learned.
LinePieces segment_pieces();

/// EncodeOptions says how documents are encoded.
struct EncodeOptions {
  std::string field = "text";                    ///< see DocumentOptions
  std::optional<std::uint32_t> end_of_document;  ///< token written after each document
  /// Counts a newline as a word, which is WikiText's convention. Word tokenizers always do this,
  /// because their words are their tokens.
  bool count_newlines = false;
  int jobs = 1;
  BadLines bad_lines = BadLines::error;
  /// The special tokens whose texts are looked for; null: none.
  const SpecialText* special = nullptr;
  /// jsonl: makes documents from the pieces of a line instead of `field`. The shard's marks then
  /// say which tokens are learned; the end-of-document token belongs to the last piece. Empty: the
  /// shard has no marks.
  LinePieces pieces = {};
};

/// EncodeTotals holds the counts of an encoding.
struct EncodeTotals {
  std::uint64_t documents = 0, tokens = 0, source_bytes = 0, source_words = 0;
  std::uint64_t marked = 0;  ///< number of tokens within marks
  LineFlaws flaws;
  std::string special;  ///< the first text of EncodeOptions::special that was found
};

/// Encodes all documents and writes ids and document boundaries to `writer`, without finish(). The
/// result does not depend on `jobs`. Takes a few MiB of memory per job. `progress` receives the
/// number of bytes read so far.
EncodeTotals encode_documents(DocumentReader& reader, const TokenizerPtr& tokenizer,
    const EncodeOptions& options, shard::Writer& writer,
    const std::function<void(std::uint64_t)>& progress);

/// Returns the id for `--end-of-document NAME`: the tokenizer's own for an empty name, nothing for
/// "none". Throws Error{usage} if the tokenizer has no such token.
std::optional<std::uint32_t> end_of_document_id(
    const Tokenizer& tokenizer, const std::string& name);

}  // namespace text
