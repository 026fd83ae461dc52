#pragma once
// A stream cut at a separator.

#include <cstddef>
#include <string>

#include "core/io.h"

namespace core {

/// The pieces between separators, front to back, without holding more than one and a block. Without
/// bytes behind the last separator there is no piece there. A byte order mark at the front is left
/// out. Not thread safe.
class SeparatedPieces {
 public:
  /// `separator` is not empty; the source must outlive this.
  SeparatedPieces(ByteSource& source, std::string separator);
  /// False at the end. Throws as the source does, and Error{bad_data} where it begins otherwise
  /// than texts do (what_is_no_text()).
  bool next(std::string& piece);

 private:
  ByteSource& source_;
  std::string separator_, held_;
  std::size_t begin_ = 0, searched_ = 0;
  bool begun_ = false, ended_ = false;
};

}  // namespace core
