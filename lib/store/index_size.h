#pragma once
// How large an index will be, and what it costs to make: known from its factory string before a row
// is there.

#include <cstdint>
#include <string>

#include "store/manifest.h"

namespace store {

/// Bytes of index.faiss: exactly so many where `least` and `most` are equal. Lists whose rows stand
/// in blocks have a last block each that is not full, the graph of HNSW has random levels.
struct IndexSize {
  std::uint64_t least = 0, most = 0;
  std::uint64_t training_rows = 0;  ///< that it learns from, at most
  std::uint64_t lists = 0;          ///< inverted ones; 0: none
  std::uint64_t centroids = 0;      ///< of a codebook of a product quantizer; 0: none
};

/// Of an index of so many rows, nothing of it made: "exact" has no bytes. Where there are inverted
/// lists, half of them hold a row at least. Throws as Index::make(), Error{usage} too for a type of
/// which it is not known.
IndexSize index_size(const std::string& factory, std::uint64_t rows, std::uint64_t width,
                     Metric metric);

}  // namespace store
