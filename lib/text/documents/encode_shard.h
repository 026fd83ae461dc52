#pragma once
// Encodes text files into a whole shard with header and provenance: the work of tokenize.
// Lets programs tokenize text files that are given in place of shards.
// Encodes documents into a shard: the body of `tokenize`.
// Splits a JSON line into pieces that are context and pieces that are learned.

#include "core/options.h"
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

/// TextOptions says how files become documents and documents become tokens.
struct TextOptions {
  std::string format = "auto", field = "text", document_separator;  ///< see DocumentOptions
  std::string column = "text";                                      ///< see DocumentOptions
  std::string end_of_document;                                      ///< see end_of_document_id()
  bool count_newlines = false;                                      ///< see EncodeOptions
  bool detokenise = false;                                          ///< see DocumentOptions
  std::string bad_lines = "error";                                  ///< see BadLines
  std::string invalid = "auto";   ///< see Invalid; auto: error, or pass for `bytes`
  std::string newlines = "keep";  ///< lf: see TextRules
  std::int64_t decode_memory = shard::kUnpackMemory;  ///< see TextRules
  bool by_content = false;              ///< see DocumentOptions; not a command-line option
  std::string name;                     ///< see DocumentOptions
  bool special = false;                 ///< see Tokenizer::parsing_special()
  std::vector<std::string> names = {};  ///< names of the files' documents; see FolderTexts
  std::string loss_on;                  ///< the parts that `pieces` learns; no option here
  LinePieces pieces = {};               ///< see EncodeOptions; the format is jsonl
  std::string part = core::kWholePart;  ///< the part of the documents to encode; see core::part()
  void fields(core::FieldList& f);

  /// Checks the combination of options. Throws Error{usage} for a part if nothing is encoded
  /// (`encodes` is false), for --detokenise with a format other than wikitext, and for
  /// --count-newlines with it.
  void check(bool encodes) const;
  /// Returns the options of documents, for a tokenizer of bytes or another; `jobs` threads read.
  DocumentOptions documents(bool of_bytes = false, int jobs = 1) const;
  /// Sets the format `auto` if it follows from the files, and returns a line that says so: JSON
  /// lines if all names say so, Parquet if all first bytes say so. Otherwise, or if a separator is
  /// given, returns an empty text, and `auto` is text. stdin is then judged by its content. Throws
  /// as are_json_lines() and are_parquet() do.
  std::string follow(const std::vector<std::string>& files);
};

/// EncodedShard is the result of encode_shard().
struct EncodedShard {
  EncodeTotals totals;
  std::uint64_t vocabulary = 0;
  core::Digest fingerprint;
  bool marked = false;  ///< see shard::Header
  /// --bad-lines or --invalid was given, so figures() reports their effects.
  bool tells_flaws = false;
  std::uint64_t replaced = 0;      ///< number of U+FFFD written into texts
  std::vector<std::string> notes;  ///< what a user should know about the files, one line each

  /// Returns documents, tokens, bytes, words, vocabulary and fingerprint; also lines_skipped,
  /// lines_mended, replaced and marked if the options ask for them.
  core::OrderedJson figures() const;
  std::string summary() const;  ///< returns the figures in one line
};

/// Returns the header of a shard of tokens, or of pairs, that a tokenizer made.
shard::Header header_of(const Tokenizer& tokenizer, bool pairs = false, bool marked = false);

/// Encodes the files' documents into a shard in `out`, without committing it; with `pairs`, encodes
/// the lines of two files, source and target. With options.part, encodes only the documents that
/// begin in that part of the files' bytes (range_of()) and records the part in the provenance;
/// `shard merge` of all parts gives the bytes of the whole. The bytes do not depend on `jobs`.
/// `progress` receives the number of bytes read. Throws Error{usage} unless pairs have two files,
/// and as read_documents(), read_pairs() and encode_documents() do.
EncodedShard encode_shard(const std::vector<std::string>& files, const TokenizerPtr& tokenizer,
    const TextOptions& options, bool pairs, int jobs, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress);

/// ReadTexts says how texts are tokenized.
struct ReadTexts {
  /// Returns the tokenizer of all texts; called once, for the first text.
  std::function<TokenizerPtr()> tokenizer;
  std::string whose;  ///< the owner of the tokenizer, in messages: "the model's"
  int jobs = 0;
  std::function<void(const std::string&)> note;
};

/// Makes shard::Dataset accept texts, which are encoded as `tokenize` without options does: a name
/// may say JSON lines; otherwise a file is a document. Bytes that are not UTF-8 are an error, even
/// for a tokenizer of bytes. The shard equals the output of `tokenize`. Notes the result for each
/// text and, from 100 MB of text on, that a shard saves this work. Call it at program start, before
/// any thread starts.
void read_texts(ReadTexts how);

}  // namespace text
