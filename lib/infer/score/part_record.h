#pragma once
// Result of one part of an evaluation, as a file with one JSON line, and the sum of all parts.

#include "core/build_info.h"
#include "infer/score/report.h"

namespace infer {

/// {"part": 1, "parts": 8, "groups": [begin, end, of], "signature": "...", "revision": "1a2b3c4",
/// "tokens": N, "bytes": X, "words": X, "nats": [...], "hash": XXH3-128 of the line without it};
/// optionally "searches": [made, followed, skipped], "worse": N, "compared": true,
/// "constant_nats": [...]
struct PartRecord {
  core::Part part;
  std::array<std::int64_t, 3> groups = {};  ///< of windows that share a forward pass: see
                                            ///< Callbacks::cut
  std::string signature;                    ///< see report.h
  Totals totals = {};        ///< of this part, but bytes and words of all parts together
  std::vector<double> nats;  ///< for each window, in the order in which one process adds them
  std::vector<double> constant_nats = {};    ///< for each window, with gates
  std::string revision = core::build::kGit;  ///< git revision of the build; parts may differ
};

/// Options that select one part, or the sum of all parts.
struct PartOptions {
  std::string part = core::kWholePart;  ///< see core::part()
  bool sum = false;
  bool datastore_ranks = false;  ///< ranks search their own datastores for all ranks
  void fields(core::FieldList& f);

  bool any() const { return sum || core::is_part(part); }
  /// Throws Error{usage} for options among the `given` that need results of all parts, and for more
  /// than one of part, sum and `ranks` (processes that share the text).
  void check(const std::set<std::string>& given, bool ranks) const;
};

/// Formats a record as one line.
std::string to_text(const PartRecord& record);
/// Parses a record. Throws Error{bad_data} that names the `origin`.
PartRecord parse_part(const std::string& line, const std::string& origin);

struct PartsSum {
  Totals totals;  ///< bit-identical to those of one process; without seconds
  std::string signature;
  std::set<std::string> revisions;

  core::OrderedJson figures() const;  ///< see report.h; includes signature and revisions
};
/// A part's record as text, and its name in messages.
struct NamedLine {
  std::string name, line;
};
/// Sums all parts, in any order. Throws Error{usage} that names a part which is missing,
/// duplicated, of another evaluation or divided differently; Error{bad_data} for a text without
/// scored tokens.
PartsSum sum_parts(const std::vector<NamedLine>& lines);
/// Sums the records in files. Also throws Error{no_input}.
PartsSum sum_files(const std::vector<std::string>& paths);

}  // namespace infer
