#pragma once
// From documents to a shard: the body of `tokenize`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "shard/writer.h"
#include "text/documents/documents.h"
#include "text/documents/line_pieces.h"
#include "text/tokenizer/special_text.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

struct EncodeOptions {
  std::string field = "text";                    ///< see DocumentOptions
  std::optional<std::uint32_t> end_of_document;  ///< written after each document
  /// A newline counts as a word: WikiText's convention, always so for word tokenizers (whose words
  /// are their tokens).
  bool count_newlines = false;
  int jobs = 1;
  BadLines bad_lines = BadLines::error;
  const SpecialText* special = nullptr;  ///< what is looked for in the texts; null: nothing
  /// jsonl: what documents are made of, in the place of `field`; their marks say which tokens are
  /// learned, the end of document with the last piece. Empty: all of a shard without marks.
  LinePieces pieces = {};
};

struct EncodeTotals {
  std::uint64_t documents = 0, tokens = 0, source_bytes = 0, source_words = 0;
  std::uint64_t marked = 0;  ///< tokens
  LineFlaws flaws;
  std::string special;  ///< the first that was found of EncodeOptions::special
};

/// Encodes all documents and writes ids and documents to `writer` (without finish()), the same
/// whatever `jobs`. Memory: a few MiB a job. `progress` is called with the bytes read so far.
EncodeTotals encode_documents(DocumentReader& reader, const TokenizerPtr& tokenizer,
                              const EncodeOptions& options, shard::Writer& writer,
                              const std::function<void(std::uint64_t)>& progress);

/// The id that `--end-of-document NAME` means: empty is the tokenizer's own, "none" none. Throws
/// Error{usage} if the tokenizer has no such token.
std::optional<std::uint32_t> end_of_document_id(const Tokenizer& tokenizer,
                                                const std::string& name);

}  // namespace text
