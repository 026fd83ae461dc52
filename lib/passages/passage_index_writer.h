#pragma once
// Makes an index of passages (passage_index.h) of shards.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "core/options.h"
#include "passages/array_pack.h"
#include "passages/passage_index.h"

namespace passages {

inline constexpr const char* kPassageFormatName = "tessera-bm25";
inline const PackFormat kPassageFormat{"TESSBM25", 1, "an index of passages"};

/// Bytes of a token of so many types.
std::size_t token_bytes_of(std::uint64_t vocabulary);

struct PassageOptions {
  std::int64_t passage = 0;  ///< tokens; 0: a document is a passage
  double k1 = 0.9, b = 0.4;
  std::int64_t buffer_size = std::int64_t{2} << 30;
  void fields(core::FieldList& f);
};

/// Writes the index to `out`, which is not committed; the same bytes whatever `jobs`. `progress` is
/// told the passages done. Throws as open_packing() does, Error{bad_data} for a text without a
/// term.
void write_passages(const std::vector<std::string>& files, const PassageOptions& options, int jobs,
                    const std::function<void(std::uint64_t)>& progress, core::ByteSink& out);

/// What an index holds: index, passages, documents, tokens, terms, passage, k1, b, bytes, data.
core::OrderedJson describe(const PassageIndex& index);

}  // namespace passages
