#pragma once
// What one part of an evaluation found, as a file of one JSON line, and the sum of all parts.

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/launcher.h"
#include "core/options.h"
#include "infer/score/totals.h"

namespace infer {

/// {"part": 1, "parts": 8, "groups": [begin, end, of], "signature": "...", "tokens": N, "bytes": X,
/// "words": X, "nats": [...], "hash": XXH3-128 of the line without it}; where a part says them
/// "searches": [made, followed, skipped], "worse": N, "compared": true, "constant_nats": [...]
struct PartRecord {
  core::Part part;
  std::array<std::int64_t, 3> groups = {};  ///< of windows that share a forward: see Watch::cut
  std::string signature;                    ///< see report.h
  std::uint64_t tokens = 0;                 ///< of the part
  double bytes = 0, words = 0;              ///< of all parts together
  std::vector<double> nats;  ///< of each window, in the order in which one process adds them
  std::vector<double> constant_nats = {};     ///< of each window too, where there are gates
  std::optional<SearchCounts> searches = {};  ///< of the part
  std::optional<GateTotals> gates = {};       ///< the same; constant_nats are the windows'
};

/// Which part is scored, or that all are added up.
struct PartOptions {
  std::string part = core::kWholePart;  ///< see core::part()
  bool sum = false;
  bool datastore_ranks = false;  ///< each of several ranks searches its own stores for all
  void fields(core::FieldList& f);

  bool any() const { return sum || core::is_part(part); }
  /// A part has figures only together with the others: throws Error{usage} for options among the
  /// `given` that say more of it, and for more than one of these and `ranks`, one of several
  /// processes that share the text.
  void check(const std::set<std::string>& given, bool ranks) const;
};

/// A line.
std::string to_text(const PartRecord& record);
/// Throws Error{bad_data} naming the `origin`.
PartRecord parse_part(const std::string& line, const std::string& origin);

struct PartsSum {
  Totals totals;  ///< to the bit what one process finds; without seconds
  std::string signature;

  core::OrderedJson figures() const;  ///< see report.h; the signature among them
};
/// A part's record as text, and what messages call it.
struct NamedLine {
  std::string name, line;
};
/// All parts, in any order. Throws Error{usage} naming a part that is missing, given twice, of
/// another evaluation or cut in another way, Error{bad_data} for a text without a scored token.
PartsSum sum_parts(const std::vector<NamedLine>& lines);
/// Their files; throws Error{no_input} too.
PartsSum sum_files(const std::vector<std::string>& paths);

}  // namespace infer
