#pragma once
// Reads documents from Parquet files: each row of a text column is one document.
// Defines the interface of libtessera_parquet.so, the plug-in that uses Apache Arrow.

#include "text/documents/documents.h"

namespace text {

/// Returns true if a regular file begins as a Parquet file. Throws Error{no_input}, Error{io}.
bool is_parquet(const std::string& path);

/// Reads the rows of options.column of each file in sequence. `options.threads` threads decode row
/// groups, which are returned in order. A row without a text is an error, or is skipped unless
/// options.bad_lines is `error`. Memory: options.rules.unpack_memory for decoding, plus a few MiB.
/// Throws Error{usage} for stdin and for a range, Error{unavailable} in a build without Arrow,
/// Error{bad_data} for a corrupt file and an absent column.
std::unique_ptr<DocumentReader> read_parquet(
    const std::vector<std::string>& paths, DocumentOptions options);

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
