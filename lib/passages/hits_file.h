#pragma once
// Stores the hits of a search in files, so that several processes can each search a part and their
// hits can be joined. All numbers are little-endian.
//
//   "TESSHITS", u32 version, u32 JSON bytes
//   JSON: part (from 1), parts, and the parameters of the search: data, unit, segment, units, top,
//   k1, b, other_documents
//   for each unit of the part, in order: u32 number of hits, then for each, best first, u32 unit,
//   f32 score
//   XXH3-128 of everything before it, low half first

#include "passages/pack_data.h"

namespace passages {

/// HitsOptions says what to do besides ordering: print terms or hits, and search in parts.
struct HitsOptions {
  std::string dump;                     ///< "terms", "hits", or empty
  std::int64_t queries = 0;             ///< number of query units, for dump; 0: all
  std::string timings;                  ///< a file
  std::string part = core::kWholePart;  ///< see core::part()
  std::vector<std::string> files;       ///< hits of all parts; empty: search
  void fields(core::FieldList& f);

  bool joins() const { return !files.empty(); }
  /// Returns true if the output is hits.
  bool gives_hits() const { return dump == "hits" || core::is_part(part); }
  /// Throws Error{usage} for options that contradict each other, or that apply to a search if the
  /// order needs none (`searches` is false).
  void check(bool searches) const;
};

/// A SearchOf identifies a search; its hits are valid for no other search.
struct SearchOf {
  std::string data;               ///< fingerprint
  std::string unit;               ///< see PackingUnit
  std::uint64_t unit_length = 0;  ///< tokens per segment; else 0
  std::uint32_t units = 0, top = 0;
  double k1 = 0, b = 0;
  bool other_documents = false;  ///< see PackOptions
};
SearchOf search_of(const PackingData& in, const PackOptions& options);

/// Writes the hits of the units of `part`, in order.
void write_hits(const SearchOf& of, const core::Part& part, const Hits& hits, core::ByteSink& out);
/// Reads the hits of a part into `all`, which has room for all units, and returns the part. Throws
/// Error{bad_data} for a corrupt file, and Error{usage}, naming the parameter, if the search
/// differs.
core::Part read_hits(core::ByteSource& source, const SearchOf& of, Hits& all);

/// Reads the hits of all units from the files of all parts, in any order. Throws as read_hits()
/// does, Error{no_input}, and Error{usage} for a part that is missing, duplicate, or of another
/// number of parts.
SearchedHits join_hits(
    const std::vector<std::string>& paths, const PackingData& in, const PackOptions& options);

}  // namespace passages
