#pragma once
// A shard for the eye: the bodies of `shard cat` and `shard head`.

#include <cstdint>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/options.h"
#include "shard/dataset.h"

namespace text {

/// The first `count` elements of the files (of vectors: rows) one a line, or `raw`: as they are
/// stored. Reads no further. Throws Error{no_input, bad_data, io}.
void print_elements(const std::vector<std::string>& paths, std::uint64_t count, bool raw,
                    core::Output& out);

/// The elements of each of the first `count` documents on one line.
void print_documents(const shard::Dataset& data, std::uint64_t count, core::Output& out);

/// The text of the first `count` documents, each ended by a newline. Throws Error{bad_data} for a
/// shard without a tokenizer, or of a kind that has no text.
void print_text(const shard::Dataset& data, std::uint64_t count, core::Output& out);

/// What to print of shards, as options say it.
struct PrintOptions {
  bool whole = true;        ///< all of it, or the first `count`
  std::int64_t count = 10;  ///< elements or rows; documents with `documents` or `text`
  bool documents = false, text = false, raw = false, names = false;
  void fields(core::FieldList& f);
};
/// By one of the three above, or the names of documents, a line each. Throws Error{usage}
/// for options that exclude each other.
void print(const std::vector<std::string>& paths, const PrintOptions& options, core::Output& out);

}  // namespace text
