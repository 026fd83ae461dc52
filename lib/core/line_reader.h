#pragma once
// Reads the lines of a source as they arrive.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/io.h"

namespace core {

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
  bool ready() const;
  /// Returns "file:line" of the last line that next() returned, for messages.
  std::string origin() const;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  std::size_t begin_ = 0;  // offset of the first byte that is not consumed
  std::uint64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace core
