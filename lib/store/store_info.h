#pragma once
// What a store is, by its store.json: nothing else is read.

#include <string>
#include <vector>

#include "core/json.h"

namespace store {

struct Info {
  /// describe(), vocabulary, removed (documents), query_width, left_out, bytes (of its files).
  core::OrderedJson report;
  /// data, rows, documents, part, windows.
  std::vector<core::OrderedJson> sources;
};
/// Throws Error{no_input} as read_manifest() and Error{bad_data} if a file is not there.
Info info(const std::string& folder);

}  // namespace store
