#pragma once
// Describes a store from its store.json, without reading other files.

#include <string>
#include <vector>

#include "core/json.h"

namespace store {

/// Info is the report of `store info`.
struct Info {
  /// describe(), vocabulary, removed (documents), query_width, key_scale, calibration, left_out,
  /// bytes (of all files).
  core::OrderedJson report;
  /// Per source: data, rows, documents, part, windows.
  std::vector<core::OrderedJson> sources;
};
/// Returns the description. Throws Error{no_input} as read_manifest() does, and Error{bad_data} if
/// a file is missing.
Info info(const std::string& folder);

}  // namespace store
