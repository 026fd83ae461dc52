#pragma once
// Writes an index of passages (passage_index.h) from shards.

#include "passages/passage_index.h"

namespace passages {

inline constexpr const char* kPassageFormatName = "tessera-bm25";
inline const PackFormat kPassageFormat{"TESSBM25", 1, "an index of passages", "bm25-search build"};

/// Returns the bytes per token for a vocabulary size.
std::size_t token_bytes_of(std::uint64_t vocabulary);

/// PassageOptions holds the parameters of an index.
struct PassageOptions {
  std::int64_t passage = 0;  ///< tokens; 0: each document is a passage
  double k1 = 0.9, b = 0.4;
  std::int64_t buffer_size = std::int64_t{2} << 30;
  void fields(core::FieldList& f);
};

/// Writes the index to `out`, without committing it. The bytes do not depend on `jobs`. `progress`
/// receives the number of passages done. Throws as open_packing() does, and Error{bad_data} for a
/// text without terms.
void write_passages(const std::vector<std::string>& files, const PassageOptions& options, int jobs,
    const std::function<void(std::uint64_t)>& progress, core::ByteSink& out);

/// Describes an index: index, passages, documents, tokens, terms, passage, k1, b, bytes, data.
core::OrderedJson describe(const PassageIndex& index);

}  // namespace passages
