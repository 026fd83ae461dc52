#pragma once
// A zip archive with uncompressed files, as torch.save writes it (format: PKWARE's APPNOTE, with
// the 64-bit extension).

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

  /// Returns whether the bytes begin with an archive's signature.
  static bool looks_like(const core::RandomSource& source);
  /// Throws Error{bad_data} for any violation of the format, and for compressed or encrypted files;
  /// Error{io}.
  explicit ZipArchive(const core::RandomSource& source);

  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace model
