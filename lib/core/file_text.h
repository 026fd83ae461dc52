#pragma once
// Reads whole files.
// Reads the lines of a source as they arrive.
// Splits a stream at a separator.

#include "core/io.h"
#include "core/json.h"

namespace core {

/// Returns the bytes of a regular file. Throws Error{no_input} if it cannot be opened or is not a
/// regular file (a pipe might never be written to), and Error{bad_data} if it is larger than
/// `limit` bytes.
std::string read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);

/// Reads and parses a file that holds one JSON document. A number beyond double's range and
/// Infinity become 9e307, so that a member that is not used may hold one. Throws as read_file() and
/// parse_json() do.
Json read_json(const std::string& path, std::size_t limit = std::size_t{1} << 30);

/// A LineReader reads no more bytes than it needs, so that a program at the end of a pipe answers
/// line by line. Not thread safe.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  /// Returns the next line without its newline, or nothing at the end. A byte order mark at the
  /// start of the file is dropped; the last line may lack its newline. Throws Error{bad_data} for a
  /// line of more than 64 MiB and for a source that does not begin as text (what_is_no_text()), and
  /// Error{io}.
  std::optional<std::string> next();
  /// Returns true if next() will not block.
  bool ready() const { return ended_ || buffer_.find('\n', begin_) != buffer_.npos; }
  /// Returns "file:line" of the last line that next() returned, for messages.
  std::string origin() const { return fmt::format("{}:{}", source_->name(), line_); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  std::size_t begin_ = 0;  // offset of the first byte that is not consumed
  std::uint64_t line_ = 0;
  bool ended_ = false;
};

/// SeparatedPieces yields the pieces between separators, front to back, and holds at most one piece
/// and one block in memory. A trailing separator is not followed by an empty piece. A byte order
/// mark at the front is dropped. Not thread safe.
class SeparatedPieces {
 public:
  /// Prepares to split `source`, which must outlive this object. `separator` is not empty.
  SeparatedPieces(ByteSource& source, std::string separator);
  /// Sets `piece` to the next piece; returns false at the end. Throws as the source does, and
  /// Error{bad_data} if the source does not begin as text (what_is_no_text()).
  bool next(std::string& piece);

 private:
  ByteSource& source_;
  std::string separator_, held_;
  std::size_t begin_ = 0, searched_ = 0;
  bool begun_ = false, ended_ = false;
};

}  // namespace core
