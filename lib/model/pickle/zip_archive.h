#pragma once
// A zip archive whose files are stored as they are, as torch.save writes it (PKWARE's APPNOTE has
// the format; with its 64-bit extension).

#include <cstdint>
#include <map>
#include <string>

#include "core/io.h"

namespace model {

class ZipArchive {
 public:
  struct Entry {
    std::uint64_t begin, size;  ///< bytes of the archive
  };

  /// Whether the bytes begin as an archive's do.
  static bool looks_like(const core::RandomSource& source);
  /// Throws Error{bad_data} for anything that is not as the format says, and for a file that is
  /// compressed or encrypted; Error{io}.
  explicit ZipArchive(const core::RandomSource& source);

  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace model
