#pragma once
// The bytes of index.faiss, held against all that FAISS believes of them. It reads lengths, links
// and numbers of rows unchecked, and follows them: in a file that somebody made to that end they
// lead out of its arrays.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace store {

/// Throws Error{bad_data} naming `origin` unless the bytes are a whole index as FAISS writes it in
/// which every length is that of what follows, every number of a row is below `rows` and stands in
/// one list only, every link of a graph leads to a row on that level, and the sizes of codes,
/// codebooks and rotations fit each other. Types whose parts are known here: Flat, PQ, SQ, PQ
/// fast-scan, the same in inverted lists (IVF, its lists found by Flat or HNSW), HNSW, and these
/// behind transformations of the vectors (PCA, OPQ, random rotations, ...) or before a refinement;
/// any other type is refused, since nobody could say whether it is sound.
void check_index_bytes(std::span<const std::byte> bytes, const std::string& origin,
                       std::uint64_t rows);

}  // namespace store
