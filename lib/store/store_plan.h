#pragma once
// Estimates what a store will need before it is built: bytes on disk, memory, time.

#include "core/options.h"

namespace store {

/// PlanOptions holds the sizes of the planned store.
struct PlanOptions {
  std::int64_t entries = 0, width = 0, documents = 1;
  std::string index, metric = "l2";
  std::int64_t nprobe = 32;
  void fields(core::FieldList& f);
};

/// Returns entries, width, index, the size of each file (index_bytes to index_bytes_most), bytes
/// (all files except store.json), and the memory to build and to search. Also returns the seconds
/// to train and fill the index and to answer one query, given the speed `products_per_s` of float32
/// products. Throws Error{usage} without entries and width, and as index_size() does.
core::OrderedJson plan(const PlanOptions& options, double products_per_s);
/// Returns the estimate for the measured speed of exact search on all processors. The measurement
/// takes about 0.1 s.
core::OrderedJson plan(const PlanOptions& options);

}  // namespace store
