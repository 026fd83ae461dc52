#pragma once
// Token files of other programs (shard/array_file.h) into a shard: the body of `shard import`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "core/options.h"
#include "shard/array_file.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// Where a document's mark stands in it.
enum class MarkAt {
  by_data,  ///< first if the first file begins with it, else last
  first,
  last
};

struct ImportTokensOptions {
  std::optional<shard::ArrayFormat> format;  ///< none: each file says its own
  TokenizerPtr tokenizer;                    ///< whose ids they are; may be null
  std::uint64_t vocabulary = 0;              ///< without a tokenizer: each id is below it
  std::optional<std::uint64_t> mark;         ///< the id that parts documents
  MarkAt mark_at = MarkAt::by_data;
  int jobs = 1;
};

/// The same as flags say it.
struct ImportRequest {
  std::string format = "auto", tokenizer, end_of_document, mark = "auto";
  std::int64_t vocabulary = 0;
  void fields(core::FieldList& f);

  /// Reads the tokenizer. Throws Error{usage} for options that contradict each other, and as
  /// load_tokenizer() and end_of_document_id() do.
  ImportTokensOptions resolve(int jobs) const;
};

struct ImportTotals {
  std::uint64_t documents = 0, elements = 0;
  std::uint64_t joined = 0;  ///< Megatron's sequences beyond one a document
  core::Digest fingerprint;

  core::OrderedJson figures() const;
  std::string summary() const;  ///< in a line
};

/// Writes the numbers of all files (none or "-" is stdin) as one shard: ids as tokens, vectors as
/// vectors. A document is: a row of a two-dimensional array of ids; what Megatron's index says;
/// else with a mark what the mark parts, from file to file; else a file. Its bytes and words are
/// those of the text that decoding gives (of word tokenizers the words are the tokens without
/// marks), 0 without a tokenizer.
/// `progress` is told the numbers done so far. Throws Error{bad_data} naming file and place for an
/// id beyond the vocabulary, Error{usage} for ids with neither tokenizer nor vocabulary.
ImportTotals import_tokens(const std::vector<std::string>& paths,
                           const ImportTokensOptions& options, core::ByteSink& out,
                           const std::function<void(std::uint64_t)>& progress);

}  // namespace text
