#pragma once
// From files of text to a whole shard, header and provenance included: tokenize's work.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "core/json.h"
#include "core/options.h"
#include "text/documents/documents.h"
#include "text/documents/encode_documents.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// How files become documents, and documents tokens, as options say it.
struct TextOptions {
  std::string format = "text", field = "text", document_separator;  ///< see DocumentOptions
  std::string column = "text";                                      ///< the same
  std::string end_of_document;                                      ///< see end_of_document_id()
  bool count_newlines = false;                                      ///< see EncodeOptions
  bool detokenise = false;                                          ///< see DocumentOptions
  std::string bad_lines = "error";                                  ///< see BadLines
  std::string invalid = "auto";   ///< see Invalid; auto: error, pass for `bytes`
  std::string newlines = "keep";  ///< lf: see TextRules
  std::int64_t decode_memory = shard::kUnpackMemory;  ///< see TextRules
  bool by_content = false;              ///< see DocumentOptions; no option of the command line
  std::string name;                     ///< the same
  bool special = false;                 ///< see parsing_special()
  std::vector<std::string> names = {};  ///< of the files, as documents; see FolderTexts
  std::string loss_on;                  ///< what `pieces` learns; no field here
  LinePieces pieces = {};               ///< see EncodeOptions; the format is jsonl
  std::string part = core::kWholePart;  ///< of the documents, to encode; see core::part()
  void fields(core::FieldList& f);

  /// Throws Error{usage} for a part of what is not encoded (`encodes`) and for --detokenise of
  /// another format than wikitext, --count-newlines of that.
  void check(bool encodes) const;
  /// Of a tokenizer of bytes, or another; read by `jobs` threads.
  DocumentOptions documents(bool of_bytes = false, int jobs = 1) const;
  /// Where the names of all files say JSON lines, or their first bytes Parquet, and a separator does
  /// not say text, that is the format from here on: returns a line that says so. Else nothing, and
  /// stdin is judged by its content. Throws as are_json_lines() and are_parquet() do.
  std::string follow(const std::vector<std::string>& files);
};

struct EncodedShard {
  EncodeTotals totals;
  std::uint64_t vocabulary = 0;
  core::Digest fingerprint;
  bool marked = false;         ///< see shard::Header
  bool tells_flaws = false;    ///< --bad-lines or --invalid was given: figures() has what they did
  std::uint64_t replaced = 0;  ///< U+FFFD in texts
  std::vector<std::string> notes;  ///< what a user should know of the files, a line each

  /// documents, tokens, bytes, words, vocabulary, fingerprint; lines_skipped, lines_mended and
  /// replaced, and marked, where they were asked for.
  core::OrderedJson figures() const;
  std::string summary() const;  ///< the same in a line
};

/// Writes a shard of the files' documents to `out` (which is not committed); with `pairs` the two
/// files' lines, source and target. With options.part the documents that begin in that part of the
/// files' bytes (range_of()), which the provenance says: `shard merge` of all parts gives the bytes
/// of the whole. The same bytes whatever `jobs`; `progress` is told the bytes
/// read. Throws Error{usage} for other than two files of pairs, and as read_documents(),
/// read_pairs() and encode_documents() do.
EncodedShard encode_shard(const std::vector<std::string>& files, const TokenizerPtr& tokenizer,
                          const TextOptions& options, bool pairs, int jobs, core::ByteSink& out,
                          const std::function<void(std::uint64_t)>& progress);

}  // namespace text
