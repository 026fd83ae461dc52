#pragma once
// Queries in, passages out: what bm25-search find does.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/options.h"
#include "passages/passage_index.h"

namespace passages {

struct FindOptions {
  std::vector<std::string> files;
  std::string index;
  std::int64_t top = 10;
  bool ids = false;
  void fields(core::FieldList& f);
};

/// Answers each line of the files: a JSON line for each hit, best first, with query (from 0), rank
/// (from 1), score, passage, document, offset (of the passage in its document) and length in
/// tokens, and text. What is there already is answered together. `written` is called when what was
/// read has been answered. Throws Error{bad_data} for --ids that are none. Returns the number of
/// queries.
std::uint64_t find_passages(const PassageIndex& index, const FindOptions& options, int jobs,
                            core::ByteSink& out, const std::function<void(std::uint64_t)>& written);

}  // namespace passages
