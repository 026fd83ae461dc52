#pragma once
// Reads documents from files: whole texts, texts with a separator, lines, JSON lines, pages of
// WikiText, pairs of lines. Memory is a few MiB for any file size, except that a line of JSON and a
// page must fit.

#include "core/launcher.h"
#include "text/documents/text_source.h"

namespace text {

/// Format is the format of input files.
enum class Format { text, jsonl, lines, wikitext, parquet };
/// Returns the format of a name. Throws Error{usage} for an unknown name.
Format format_of(std::string_view name);

/// A ByteRange selects the documents whose first byte is in [begin, end). Offsets count the
/// decompressed bytes of all files in sequence; for pairs, those of the source only.
struct ByteRange {
  std::uint64_t begin = 0, end = UINT64_MAX;
  bool has(std::uint64_t byte) const { return byte >= begin && byte < end; }
};
/// Returns the range of a part. Throws Error{usage} unless all files are regular and uncompressed,
/// because the sizes of the texts must be known. Throws Error{no_input}, Error{io}.
ByteRange range_of(const core::Part& part, const std::vector<std::string>& paths);

/// BadLines says what to do with a line that is not a JSON object with a text: throw, skip it, or
/// mend it. Mending puts U+FFFD for unpaired surrogates and invalid UTF-8, and null for NaN and
/// Infinity; a line that is still invalid is skipped.
enum class BadLines { error, skip, replace };

/// LineFlaws counts the JSON lines that were skipped or mended.
struct LineFlaws {
  std::uint64_t skipped = 0, mended = 0;
  std::string first;  ///< the first skipped line and the reason: "file:line: reason"
  void add(const LineFlaws& later);
};

/// DocumentOptions says how files are divided into documents.
struct DocumentOptions {
  Format format = Format::text;
  std::string field = "text";  ///< jsonl: the member that holds the document
  /// text: the separator between documents; empty: a file is one document. A separator at the end
  /// of a file is not followed by an empty document; two adjacent separators have an empty document
  /// between them.
  std::string separator;
  ByteRange range = {};
  bool detokenise = false;  ///< wikitext: see wikitext_detokenised()
  TextRules rules = {};
  BadLines bad_lines = BadLines::error;  ///< for the caller that makes a PartTexts
  /// Detects the format of stdin, or of a single file with a `name`, from its first line: jsonl if
  /// that is a JSON object with `field`.
  bool by_content = false;
  /// The name of the one file in messages; empty: its path.
  std::string name = {};
  /// The name of each file's documents; empty: none.
  std::vector<std::string> names = {};
  std::string column = "text";  ///< parquet: the column that holds the document
  int threads = 1;              ///< parquet: number of decoding threads
};

/// A Batch is a sequence of consecutive parts of documents.
struct Batch {
  struct Part {
    std::size_t begin, end;  ///< offsets in `bytes`; jsonl: of the line
    bool closes;             ///< the document ends with this part
    bool continues;          ///< the document began before this part
    /// The preceding byte, in the same document, is not white space.
    bool in_word;
    std::uint64_t line;  ///< jsonl: line number in the file, from 1
  };
  std::string bytes;  ///< followed by at least kPadding readable bytes
  std::vector<Part> parts;
  Format format = Format::text;
  bool detokenise = false;
  std::string source;              ///< name of the file in messages
  std::string name;                ///< name of the batch's documents; may be empty
  std::uint64_t source_bytes = 0;  ///< bytes read from the sources so far, for progress
  static constexpr std::size_t kPadding = 64;

  /// Returns the bytes of a part as they are in the file.
  std::string_view piece(const Part& part) const {
    return {bytes.data() + part.begin, part.end - part.begin};
  }
};

/// A CutFunction finds where a text may be cut; see Tokenizer::cut.
using CutFunction = std::function<const char*(const char* begin, const char* end)>;

/// A DocumentReader reads batches. Not thread safe.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  /// Reads the next batch; returns false at the end. Throws Error{no_input}, Error{io},
  /// Error{bad_data}.
  virtual bool next(Batch& batch) = 0;
  /// Returns the XXH3-128 of each file's decompressed bytes, in order, after next() has returned
  /// false.
  virtual std::vector<core::Digest> fingerprints() const = 0;
  /// Returns the format of the files once next() has been called; jsonl if `by_content` detected
  /// it.
  virtual Format format() const = 0;
  /// Returns what was noticed in the files, after next() has returned false.
  virtual const TextFindings& findings() const = 0;
};

/// Returns true if the names of all files mean JSON lines (.jsonl or .ndjson, optionally followed
/// by .zst, .gz, .xz or .bz2). Throws Error{usage} if only some names do, Error{bad_data} if a file
/// with such a name does not begin with { (after blanks and a byte order mark), Error{no_input},
/// Error{io}.
bool are_json_lines(const std::vector<std::string>& paths);
/// Returns true if all files begin as Parquet files. Throws Error{usage} if only some do,
/// Error{no_input}, Error{io}.
bool are_parquet(const std::vector<std::string>& paths);
/// Reads the documents of `paths` in sequence, decompressed if necessary; no path or "-" is stdin.
std::unique_ptr<DocumentReader> read_documents(
    const std::vector<std::string>& paths, DocumentOptions options, CutFunction cut);
/// Reads pairs: line n of `source` and line n of `target`. Throws Error{bad_data} if one file has
/// more lines.
std::unique_ptr<DocumentReader> read_pairs(const std::string& source, const std::string& target,
    const ByteRange& range = {}, const TextRules& rules = {});

/// A PartTexts passes the text of each part to `take(part, text)`: for jsonl the field's value, for
/// wikitext the page, detokenised if the batch says so. Throws Error{bad_data}, naming file and
/// line. Each thread needs its own.
class PartTexts {
 public:
  explicit PartTexts(std::string field, BadLines bad = BadLines::error);
  ~PartTexts();
  LineFlaws each(
      const Batch& batch, const std::function<void(const Batch::Part&, std::string_view)>& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns what a user should know about the files, one line per note, after next() has returned
/// false.
std::vector<std::string> notes_of(
    const DocumentReader& reader, const DocumentOptions& options, const LineFlaws& flaws);

/// Returns the total size of the files; 0 if one is not a regular file.
std::uint64_t total_bytes(const std::vector<std::string>& paths);

}  // namespace text
