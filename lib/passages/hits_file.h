#pragma once
// What a search found, as a file: each part of a long search by a process of its own, and all of
// them as one. All numbers are little-endian.
//
//   "TESSHITS", u32 version, u32 JSON bytes
//   JSON: part (from 1), parts, and what was searched: data, unit, segment, units, top, k1, b,
//   other_documents
//   for each unit of the part, in their order: u32 hits, and for each, best first, u32 unit,
//   f32 score
//   XXH3-128 of all before it, its low half first

#include <cstdint>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/launcher.h"
#include "core/options.h"
#include "passages/bm25.h"
#include "passages/pack_data.h"

namespace passages {

/// What is done beside an order: terms or hits are printed, and a long search is done in parts.
struct HitsOptions {
  std::string dump;                     ///< "terms", "hits", or empty
  std::int64_t queries = 0;             ///< so many units ask, for dump; 0: all
  std::string timings;                  ///< a file
  std::string part = core::kWholePart;  ///< see core::part()
  std::vector<std::string> files;       ///< hits of all parts; empty: what is needed is searched
  void fields(core::FieldList& f);

  bool joins() const { return !files.empty(); }
  /// Hits are the output.
  bool gives_hits() const { return dump == "hits" || core::is_part(part); }
  /// Throws Error{usage} for what contradicts itself, or an order that needs no search
  /// (`searches`).
  void check(bool searches) const;
};

/// What hits are of: they serve no other search.
struct SearchOf {
  std::string data;               ///< fingerprint
  std::string unit;               ///< see PackingUnit
  std::uint64_t unit_length = 0;  ///< of segments, in tokens; else 0
  std::uint32_t units = 0, top = 0;
  double k1 = 0, b = 0;
  bool other_documents = false;  ///< see PackOptions
};
SearchOf search_of(const PackingData& in, const PackOptions& options);

/// `hits`: of the units of `part`, in their order.
void write_hits(const SearchOf& of, const core::Part& part, const Hits& hits, core::ByteSink& out);
/// Puts the hits of a part where they belong in `all`, which is of all units. Returns the part.
/// Throws Error{bad_data} for what is damaged, Error{usage} naming what was searched otherwise.
core::Part read_hits(core::ByteSource& source, const SearchOf& of, Hits& all);

/// The hits of all units from the files of all parts, in any order. Throws as read_hits(),
/// Error{no_input}, and Error{usage} naming a part that is missing, given twice, or one of another
/// number of parts.
Found join_hits(const std::vector<std::string>& paths, const PackingData& in,
                const PackOptions& options);

}  // namespace passages
