#pragma once
// Documents out of Parquet files: a row of a column of texts is one.

#include <memory>
#include <string>
#include <vector>

#include "text/documents/documents.h"

namespace text {

/// Whether a regular file begins as Parquet files do. Throws Error{no_input}, Error{io}.
bool is_parquet(const std::string& path);

/// The rows of options.column of each file, one file after the other; row groups are decoded by
/// `options.threads` threads and given in their order. Rows without a text are an error, or left
/// out where options.bad_lines is not `error`. Memory: options.rules.unpack_memory for decoding,
/// and some MiB. Throws Error{usage} for stdin and for a range, Error{unavailable} for a build
/// without Arrow, Error{bad_data} for a damaged file and for a column that is not there.
std::unique_ptr<DocumentReader> read_parquet(const std::vector<std::string>& paths,
                                             DocumentOptions options);

}  // namespace text
