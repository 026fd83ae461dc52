#pragma once
// What a store will take before it is built: bytes on disk, memory, time.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/options.h"

namespace store {

struct PlanOptions {
  std::int64_t entries = 0, width = 0, documents = 1;
  std::string index, metric = "l2";
  std::int64_t nprobe = 32;
  void fields(core::FieldList& f);
};

/// entries, width, index, what each file takes (index_bytes to index_bytes_most), bytes (all but
/// store.json), memory to build and to search, and, from `products_per_s` of float32, the seconds
/// that training and filling the index and one query take. Throws Error{usage} without entries and
/// width, and as index_size().
core::OrderedJson plan(const PlanOptions& options, double products_per_s);
/// The same, at the speed of exact search on all processors, measured in about a tenth of a second.
core::OrderedJson plan(const PlanOptions& options);

}  // namespace store
