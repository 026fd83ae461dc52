#pragma once
// Validates the bytes of index.faiss. FAISS reads lengths, links and row numbers without checks and
// follows them, so in a malicious file they would lead outside its arrays.

#include "core/base.h"

namespace store {

/// Throws Error{bad_data}, naming `origin`, unless the bytes are a whole FAISS index. Checks that
/// every length matches the data that follows, every row number is below `rows` and is in only one
/// list, every link of a graph leads to a row on its level, and the sizes of codes, codebooks and
/// rotations are consistent. Supported types are Flat, PQ, SQ, PQ fast-scan, these in inverted
/// lists (IVF with Flat or HNSW as coarse quantizer), and HNSW, each also after transformations of
/// the vectors (PCA, OPQ, random rotations, ...) or before a refinement. Any other type is refused
/// because it cannot be validated.
void check_index_bytes(
    std::span<const std::byte> bytes, const std::string& origin, std::uint64_t rows);

}  // namespace store
