#pragma once
// Lines of a source as they arrive.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/io.h"

namespace core {

/// Takes no byte more than it must, so that a program at the end of a pipe answers line by line.
/// Not thread safe.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  /// The next line without its newline, and the file's first without a byte order mark; a last one
  /// may lack its newline. Nothing at the end. Throws Error{bad_data} for more than 64 MiB and
  /// for a source that begins otherwise than texts do (what_is_no_text()), Error{io}.
  std::optional<std::string> next();
  /// next() will not wait for the source.
  bool ready() const;
  /// file:line of what next() gave, for messages.
  std::string origin() const;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what is not taken yet
  std::uint64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace core
