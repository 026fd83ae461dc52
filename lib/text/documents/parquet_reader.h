#pragma once
// Reads documents from Parquet files: each row of a text column is one document.

#include <memory>
#include <string>
#include <vector>

#include "text/documents/documents.h"

namespace text {

/// Returns true if a regular file begins as a Parquet file. Throws Error{no_input}, Error{io}.
bool is_parquet(const std::string& path);

/// Reads the rows of options.column of each file in sequence. `options.threads` threads decode row
/// groups, which are returned in order. A row without a text is an error, or is skipped unless
/// options.bad_lines is `error`. Memory: options.rules.unpack_memory for decoding, plus a few MiB.
/// Throws Error{usage} for stdin and for a range, Error{unavailable} in a build without Arrow,
/// Error{bad_data} for a corrupt file and an absent column.
std::unique_ptr<DocumentReader> read_parquet(const std::vector<std::string>& paths,
                                             DocumentOptions options);

}  // namespace text
