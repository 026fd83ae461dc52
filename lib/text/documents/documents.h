#pragma once
// Documents out of files: whole texts, texts with a separator, lines, JSON lines, WikiText's pages,
// pairs of lines. Memory: a few MiB whatever the size of the file, except that a line of JSON and a
// page must fit.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "core/launcher.h"
#include "text/documents/text_source.h"

namespace text {

enum class Format { text, jsonl, lines, wikitext, parquet };
/// Throws Error{usage}.
Format format_of(std::string_view name);

/// Documents whose first byte is one of [begin, end) are read, the others passed over. Bytes are
/// counted over all files, one after the other and unpacked; of pairs over the source alone.
struct ByteRange {
  std::uint64_t begin = 0, end = UINT64_MAX;
  bool has(std::uint64_t byte) const { return byte >= begin && byte < end; }
};
/// The range of a part. Throws Error{usage} unless all are files whose size is that of their text:
/// regular ones, not compressed. Error{no_input}, Error{io}.
ByteRange range_of(const core::Part& part, const std::vector<std::string>& paths);

/// What becomes of a line that is no JSON object with a text: an error; left out; or mended, with
/// U+FFFD for halves of surrogate pairs and for what is not UTF-8, and null for NaN and Infinity,
/// and left out where that does not help.
enum class BadLines { error, skip, replace };

/// Lines of JSON that were left out or mended.
struct LineFlaws {
  std::uint64_t skipped = 0, mended = 0;
  std::string first;  ///< the first one left out, and why: file:line: reason
  void add(const LineFlaws& later);
};

struct DocumentOptions {
  Format format = Format::text;
  std::string field = "text";  ///< jsonl: the member that is the document
  /// text: what stands between documents; empty: a file is one document. Without bytes an end of
  /// file ends no document; between two separators there is one even if it is empty.
  std::string separator;
  ByteRange range = {};
  bool detokenise = false;  ///< wikitext: see wikitext_detokenised()
  TextRules rules = {};
  BadLines bad_lines = BadLines::error;  ///< for who makes PartTexts
  /// stdin, or a file with another `name`, alone, by its first line: jsonl if that is a JSON object
  /// with `field`.
  bool by_content = false;
  std::string name = {};                ///< of the one file, for messages; empty: its path
  std::vector<std::string> names = {};  ///< of each file's documents; empty: none
  std::string column = "text";          ///< parquet: the column that is the document
  int threads = 1;                      ///< parquet: that decode
};

/// Some consecutive parts of documents.
struct Batch {
  struct Part {
    std::size_t begin, end;  ///< in `bytes`; jsonl: the line
    bool closes;             ///< the document ends with this part
    bool continues;          ///< the document began before this part
    bool in_word;            ///< the byte before, of the same document, is no white space
    std::uint64_t line;      ///< jsonl: its number in the file, from 1
  };
  std::string bytes;  ///< followed by at least kPadding readable bytes
  std::vector<Part> parts;
  Format format = Format::text;
  bool detokenise = false;
  std::string source;              ///< name of the file, for messages
  std::string name;                ///< of its documents; may be empty
  std::uint64_t source_bytes = 0;  ///< read of the sources so far, for progress
  static constexpr std::size_t kPadding = 64;

  /// A part as it stands in the file.
  std::string_view piece(const Part& part) const {
    return {bytes.data() + part.begin, part.end - part.begin};
  }
};

/// See Tokenizer::cut.
using CutFunction = std::function<const char*(const char* begin, const char* end)>;

/// Reads batches. Not thread safe.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  /// False at the end. Throws Error{no_input}, Error{io}, Error{bad_data}.
  virtual bool next(Batch& batch) = 0;
  /// XXH3-128 of each file's bytes, unpacked, in order; after next() gave false.
  virtual std::vector<core::Digest> fingerprints() const = 0;
  /// How the files were read, after next() gave false (or once): jsonl where `by_content` found it.
  virtual Format format() const = 0;
  /// What was seen in the files, after next() gave false.
  virtual const TextSights& sights() const = 0;
};

/// True if the names (.jsonl, .ndjson; .zst, .gz, .xz or .bz2 behind it) of all files say JSON
/// lines. Throws Error{usage} where some do and others do not, Error{bad_data} where a file so
/// named begins otherwise than { does (blanks and a byte order mark in front of it are passed
/// over), Error{no_input}, Error{io}.
bool are_json_lines(const std::vector<std::string>& paths);
/// Whether all files begin as Parquet files do. Throws Error{usage} where some do and others do not,
/// Error{no_input}, Error{io}.
bool are_parquet(const std::vector<std::string>& paths);
/// The documents of `paths` one after the other, unpacked where they are compressed; none or "-" is
/// stdin.
std::unique_ptr<DocumentReader> read_documents(const std::vector<std::string>& paths,
                                               DocumentOptions options, CutFunction cut);
/// Line n of `source`, line n of `target`, for all n. Throws Error{bad_data} if one has more lines.
std::unique_ptr<DocumentReader> read_pairs(const std::string& source, const std::string& target,
                                           const ByteRange& range = {},
                                           const TextRules& rules = {});

/// Gives the text of each part to `take(part, text)`; jsonl: the field's value; a page
/// detokenised where the batch says so. Throws
/// Error{bad_data} naming file and line. One a thread.
class PartTexts {
 public:
  explicit PartTexts(std::string field, BadLines bad = BadLines::error);
  ~PartTexts();
  LineFlaws each(const Batch& batch,
                 const std::function<void(const Batch::Part&, std::string_view)>& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a user should know of the files that were read, a line each; after next() gave false.
std::vector<std::string> notes_of(const DocumentReader& reader, const DocumentOptions& options,
                                  const LineFlaws& flaws);

/// Sizes of the files together; 0 if one is no regular file.
std::uint64_t total_bytes(const std::vector<std::string>& paths);

}  // namespace text
