#pragma once
// Estimates what a store will need before it is built: bytes on disk, memory, time.
// Predicts the size and the cost of an index from its factory string, before there are rows.

#include "core/options.h"
#include "store/manifest.h"

namespace store {

/// An IndexSize is the range of the size of index.faiss in bytes; the size is exact if `least`
/// equals `most`. It varies because lists in blocks have partly filled last blocks, and because
/// HNSW draws random levels.
struct IndexSize {
  std::uint64_t least = 0, most = 0;
  std::uint64_t training_rows = 0;  ///< most rows used for training
  std::uint64_t lists = 0;          ///< number of inverted lists; 0: none
  std::uint64_t centroids = 0;      ///< centroids per codebook of a product quantizer; 0: none
};

/// Predicts the size for a number of rows without building anything; "exact" takes 0 bytes. Assumes
/// that at least half of the inverted lists have a row. Throws as Index::make() does, and
/// Error{usage} for a type whose size is not known.
IndexSize index_size(
    const std::string& factory, std::uint64_t rows, std::uint64_t width, Metric metric);

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
