#pragma once
// What each unit of a data set (a segment, a document) says: its terms and how often, for BM25.

#include <cstdint>
#include <span>
#include <vector>

#include "core/spill.h"

namespace passages {

struct TermCount {
  std::uint32_t term, count;
  bool operator==(const TermCount&) const = default;
};

/// The units' terms, in the order of the units, and the counts over all units. Memory: 12 bytes a
/// unit, 4 a term; the lists, 8 bytes an entry, lie on disk where they are more than `memory`
/// bytes.
class TermLists {
 public:
  explicit TermLists(std::uint64_t memory = std::uint64_t{1} << 62) : lists_(memory) {}

  /// The next unit's terms, each once, counts > 0; sorted here by number. Throws Error{bad_data}
  /// beyond 2^31 units.
  void add(std::vector<TermCount>& terms);
  /// The last unit was added.
  void finish() { lists_.finish(); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(length_.size()); }
  /// One more than the highest number of a term.
  std::uint32_t terms() const { return static_cast<std::uint32_t>(units_with_.size()); }
  /// Ascending by term. After finish(), as all below.
  std::span<const TermCount> list(std::uint32_t unit) const {
    return lists_.slice(begin_[unit], begin_[unit + 1]);
  }
  /// Entries of the lists before this unit's.
  std::uint64_t begin(std::uint32_t unit) const { return begin_[unit]; }
  /// Terms of a unit, repetitions counted.
  std::uint32_t length(std::uint32_t unit) const { return length_[unit]; }
  double average_length() const { return length_.empty() ? 0.0 : total_ / length_.size(); }
  /// How many units have the term.
  std::uint32_t units_with(std::uint32_t term) const { return units_with_[term]; }
  bool spilled() const { return lists_.spilled(); }

 private:
  core::SpillArray<TermCount> lists_;
  std::vector<std::uint64_t> begin_ = {0};
  std::vector<std::uint32_t> length_, units_with_;
  double total_ = 0;
};

}  // namespace passages
