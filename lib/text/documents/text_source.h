#pragma once
// Reads a text file: decompresses it and checks its UTF-8.
// Finds the texts in a folder and its subfolders, which `tokenize --recursive` reads.
// Reads WikiText's files, which consist of pages with titles, and words and punctuation separated
// by spaces. Page boundaries, detokenisation and word counts follow the task `wikitext` of
// lm-evaluation-harness, so that figures per word and per byte are comparable with it.

#include "core/hash.h"
#include "shard/unpacked_source.h"

namespace text {

/// Returns true if a page begins with this line (without its newline): ` = Title = `, but not ` = =
/// Part = = `.
bool is_wikitext_title(std::string_view line);

/// Undoes the tokenisation of a page: ` @-@ ` becomes `-`, and full stops, brackets and quotes are
/// attached to their words.
std::string wikitext_detokenised(std::string_view page);

/// Returns the number of pieces between runs of Unicode white space. A run at the beginning or end
/// adds an empty piece: 2 for "a b", 4 for " a b ".
std::uint64_t wikitext_words(std::string_view page);

/// Invalid says what to do with bytes that are not UTF-8: throw, replace by U+FFFD, or pass them
/// unchanged. `keep` also passes a byte order mark and files that are not text.
enum class Invalid { error, replace, pass, keep };

/// TextRules says how a text file is read.
struct TextRules {
  Invalid invalid = Invalid::keep;
  bool drop_cr = false;  ///< CRLF becomes LF
  std::uint64_t unpack_memory = shard::kUnpackMemory;
};

/// TextFindings records what was noticed in text files.
struct TextFindings {
  struct Finding {
    std::string file;  ///< the first such file
    std::uint64_t count = 0, files = 0;
    void add(const std::string& name, std::uint64_t n);
  };
  /// Lines that end in CRLF, NUL bytes, and U+FFFD that were written.
  Finding crlf, nul, replaced;
  Finding json;    ///< files that begin as JSON but are read as text
  Finding no_row;  ///< rows of a table that have no text and were skipped
  /// Files that do not begin as text, whose bytes are read unchanged.
  Finding no_text;
  std::string what_is_no_text;  ///< what the first such file is
  /// Adds what was noticed in one more file.
  void add(const std::string& name, const TextFindings& file);
  /// Returns what a user should know, one line per note.
  std::vector<std::string> notes(const TextRules& rules) const;
};

/// A TextSource reads one file front to back, without its byte order mark. Not thread safe.
class TextSource {
 public:
  /// A Start receives the file's first block, without byte order mark. It returns true if the bytes
  /// are JSON, whose parser checks the UTF-8 and ignores white space.
  using Start = std::function<bool(std::string_view)>;
  /// Opens a file. `name` is the name in messages; if empty, it is the path.
  TextSource(
      const std::string& path, const TextRules& rules, Start start, const std::string& name = {});

  /// Appends about `n` bytes to text[0, size), where text is longer by padding, and returns true at
  /// the end. Appends whole characters unless bytes pass unchanged. Throws Error{bad_data}, naming
  /// file and byte.
  bool append(std::string& text, std::size_t& size, std::size_t n);

  const std::string& name() const { return source_.name(); }
  /// Returns the number of bytes read from the file itself.
  std::uint64_t bytes() const { return source_.file_bytes(); }
  /// Returns the digest of the file's decompressed, otherwise unchanged bytes.
  core::Digest digest() const { return hasher_.digest(); }
  const TextFindings& findings() const { return findings_; }

 private:
  void begin(std::string& text, std::size_t from, std::size_t& size);
  void check(std::string& text, std::size_t from, std::size_t& size);
  void count_lines(std::string_view text);

  shard::UnpackedSource source_;
  TextRules rules_;
  Start start_;
  core::Hasher hasher_;
  std::string held_;         // bytes read that wait for the rest of their character
  std::uint64_t place_ = 0;  // offset in the file of the next byte for append()
  bool begun_ = false, json_ = false;
  bool after_cr_ = false;  // the last byte given is a CR
  TextFindings findings_;
};

/// Turns each CRLF of text[from, size) into LF and reduces `size` accordingly.
void drop_cr(std::string& text, std::size_t from, std::size_t& size);

/// FolderTexts lists the texts that were found.
struct FolderTexts {
  std::vector<std::string> paths;
  std::vector<std::string> names;  ///< path of each within its folder, with slashes; UTF-8
  std::vector<std::string> notes;  ///< what was left out, one line each
};

/// Lists the regular files below each folder, sorted by the bytes of their paths within it. Leaves
/// out hidden files and folders (.git), links, special files, shards, and files that do not begin
/// as text once decompressed: known binary formats, or a NUL in the first 4 KiB. Throws
/// Error{no_input} for a path that is not a folder, Error{bad_data} for folders without a text and
/// for a name that no document can have.
FolderTexts texts_below(const std::vector<std::string>& folders);

}  // namespace text
