#pragma once
// Defines the interface of libtessera_parquet.so, the plug-in that uses Apache Arrow.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace text {

/// A ParquetTexts reads the texts of one column of a Parquet file in order. Not thread safe.
class ParquetTexts {
 public:
  virtual ~ParquetTexts() = default;
  /// Appends some texts to `bytes`, and the end offset of each to `ends`. A row without a text
  /// appends only kNone to `ends`. Returns false at the end of the file, and on an error, which it
  /// describes in `error`.
  virtual bool next(std::string& bytes, std::vector<std::size_t>& ends, std::string& error) = 0;

  static constexpr std::size_t kNone = SIZE_MAX;
};

/// A ParquetRequest says what to read.
struct ParquetRequest {
  std::string path, column;
  int threads = 1;           ///< number of threads that decode row groups
  std::uint64_t memory = 0;  ///< limit of decoding memory, in bytes
};

/// A ParquetLibrary is what the plug-in exports as tessera_parquet().
struct ParquetLibrary {
  const char* build;  ///< core::build::kVersion
  /// Opens a file. Returns null on an error, which it describes in `error`.
  ParquetTexts* (*open)(const ParquetRequest& request, std::string& error);
};

}  // namespace text
