#pragma once
// Splits a stream at a separator.

#include <cstddef>
#include <string>

#include "core/io.h"

namespace core {

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
