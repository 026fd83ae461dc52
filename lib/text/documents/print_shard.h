#pragma once
// Prints a shard for people: the bodies of `shard cat` and `shard head`.

#include <cstdint>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/options.h"
#include "shard/dataset.h"

namespace text {

/// Prints the first `count` elements of the files (rows, for vectors), one per line, or with `raw`
/// as they are stored. Reads no further. Throws Error{no_input, bad_data, io}.
void print_elements(const std::vector<std::string>& paths, std::uint64_t count, bool raw,
                    core::Output& out);

/// Prints the elements of each of the first `count` documents on one line.
void print_documents(const shard::Dataset& data, std::uint64_t count, core::Output& out);

/// Prints the text of the first `count` documents, each followed by a newline. Throws
/// Error{bad_data} for a shard without a tokenizer and for a kind without text.
void print_text(const shard::Dataset& data, std::uint64_t count, core::Output& out);

/// PrintOptions says what to print of shards.
struct PrintOptions {
  bool whole = true;  ///< everything, or only the first `count`
  /// The number of elements or rows to print, or of documents with `documents` or `text`.
  std::int64_t count = 10;
  bool documents = false, text = false, raw = false, names = false;
  void fields(core::FieldList& f);
};
/// Prints by one of the three functions above, or prints the names of documents, one per line.
/// Throws Error{usage} for options that exclude each other.
void print(const std::vector<std::string>& paths, const PrintOptions& options, core::Output& out);

}  // namespace text
