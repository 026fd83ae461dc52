#pragma once
// What libtessera_parquet.so, the plug-in that knows Apache Arrow, gives the programs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace text {

/// The texts of one column of a Parquet file, in the file's order. Not thread safe.
class ParquetTexts {
 public:
  virtual ~ParquetTexts() = default;
  /// Appends some more texts to `bytes`, and the place at which each ends to `ends`. A row without
  /// a text appends nothing, and kNone in place of an end. False at the end of the file, or where
  /// `error` says what is wrong with it.
  virtual bool next(std::string& bytes, std::vector<std::size_t>& ends, std::string& error) = 0;

  static constexpr std::size_t kNone = SIZE_MAX;
};

struct ParquetRequest {
  std::string path, column;
  int threads = 1;           ///< that decode row groups
  std::uint64_t memory = 0;  ///< bytes that decoding may take
};

/// What the plug-in exports as tessera_parquet().
struct ParquetLibrary {
  const char* build;  ///< core::build::kVersion
  /// Null: `error` says why.
  ParquetTexts* (*open)(const ParquetRequest& request, std::string& error);
};

}  // namespace text
