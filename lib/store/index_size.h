#pragma once
// Predicts the size and the cost of an index from its factory string, before there are rows.

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

}  // namespace store
