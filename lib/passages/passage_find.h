#pragma once
// Answers queries with passages: the work of bm25-search find.

#include "core/options.h"
#include "passages/passage_index.h"

namespace passages {

/// FindOptions says which queries to answer from which index.
struct FindOptions {
  std::vector<std::string> files;
  std::string index;
  std::int64_t top = 10;
  bool ids = false;
  void fields(core::FieldList& f);
};

/// Answers each line of the files with one JSON line per hit, best first: query (from 0), rank
/// (from 1), score, passage, document, offset (of the passage in its document) and length in
/// tokens, and text. Batches the queries that are already available. Calls `written` whenever all
/// queries read so far are answered. Throws Error{bad_data} for invalid --ids. Returns the number
/// of queries.
std::uint64_t find_passages(const PassageIndex& index, const FindOptions& options, int jobs,
    core::ByteSink& out, const std::function<void(std::uint64_t)>& written);

}  // namespace passages
