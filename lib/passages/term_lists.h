#pragma once
// Lists the terms of each unit of a data set (a segment, a document) with their counts, for BM25.

#include <cstdint>
#include <span>
#include <vector>

#include "core/spill.h"

namespace passages {

/// A TermCount is a term's number and its count in a unit.
struct TermCount {
  std::uint32_t term, count;
  bool operator==(const TermCount&) const = default;
};

/// TermLists holds the terms of the units, in the order of the units, and counts over all units.
/// Memory: 12 bytes per unit and 4 per term. The lists take 8 bytes per entry; beyond `memory`
/// bytes they are on disk.
class TermLists {
 public:
  explicit TermLists(std::uint64_t memory = std::uint64_t{1} << 62) : lists_(memory) {}

  /// Adds the next unit's terms, each once and with a count > 0; sorts them by number. Throws
  /// Error{bad_data} beyond 2^31 units.
  void add(std::vector<TermCount>& terms);
  /// Ends the adding of units.
  void finish() { lists_.finish(); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(length_.size()); }
  /// Returns the highest number of a term + 1.
  std::uint32_t terms() const { return static_cast<std::uint32_t>(units_with_.size()); }
  /// Returns the unit's terms, ascending by number. Requires finish(), as do the functions below.
  std::span<const TermCount> list(std::uint32_t unit) const {
    return lists_.slice(begin_[unit], begin_[unit + 1]);
  }
  /// Returns the number of entries in the lists before this unit's.
  std::uint64_t begin(std::uint32_t unit) const { return begin_[unit]; }
  /// Returns the number of term occurrences of a unit.
  std::uint32_t length(std::uint32_t unit) const { return length_[unit]; }
  double average_length() const { return length_.empty() ? 0.0 : total_ / length_.size(); }
  /// Returns the number of units that have the term.
  std::uint32_t units_with(std::uint32_t term) const { return units_with_[term]; }
  bool spilled() const { return lists_.spilled(); }

 private:
  core::SpillArray<TermCount> lists_;
  std::vector<std::uint64_t> begin_ = {0};
  std::vector<std::uint32_t> length_, units_with_;
  double total_ = 0;
};

}  // namespace passages
