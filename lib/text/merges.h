#pragma once
// The merges of a byte-pair encoding (Sennrich et al. 2016) and their application to one word.

#include <cstdint>
#include <span>
#include <vector>

namespace text {

/// One merge: two neighbouring symbols become one. Its place in the list is its rank.
struct Merge {
  std::uint32_t left, right, result;
  bool operator==(const Merge&) const = default;
};

/// Applies merges: again and again the lowest rank among all neighbouring pairs, leftmost first,
/// until none is left. O(n log n) for n symbols. Const calls are thread safe.
class MergeTable {
 public:
  MergeTable() = default;
  explicit MergeTable(std::vector<Merge> merges);

  const std::vector<Merge>& list() const { return merges_; }
  bool empty() const { return merges_.empty(); }

  /// Memory of apply(), to be used again. One a thread.
  struct Scratch {
    std::vector<std::uint32_t> rank, next, previous;
    std::vector<std::uint64_t> heap;
  };
  /// Merges `symbols` in place.
  void apply(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Slot {
    std::uint64_t pair = ~std::uint64_t{0};
    std::uint32_t rank = kNone;
    std::uint32_t result = kNone;
  };
  std::uint32_t rank_of(std::uint32_t left, std::uint32_t right) const;
  void apply_short(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;
  void apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

}  // namespace text
