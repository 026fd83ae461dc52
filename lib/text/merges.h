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
    std::vector<std::uint32_t> next, previous;
    std::vector<std::uint64_t> found, heap;
  };
  /// Merges `symbols` in place.
  void apply(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

 private:
  // Rank << 32 | result of a pair, so that the smaller comes first; kNone if it is no merge.
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t pair = kNone, found = kNone;
  };
  std::uint64_t look_up(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    const std::uint64_t hash = hash_of(pair), bit = hash >> (64 - kFilterBits);
    return filter_[bit >> 6] >> (bit & 63) & 1 ? find(pair, hash) : kNone;
  }
  // Without the filter, for pairs of bytes: most of those are merges.
  std::uint64_t look_up_bytes(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    return find(pair, hash_of(pair));
  }
  std::uint64_t find(std::uint64_t pair, std::uint64_t hash) const {
    for (std::size_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].pair == pair) return slots_[at].found;
      if (slots_[at].found == kNone) return kNone;
    }
  }
  static std::uint64_t hash_of(std::uint64_t pair) {
    return (pair * 0x9E3779B97F4A7C15u ^ pair >> 32) * 0xD6E8FEB86659FD93u;
  }
  void apply_short(std::vector<std::uint32_t>& symbols) const;
  void apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  int shift_ = 0;            // a hash's top bits choose the slot
  // A bit for each hash that is there: most pairs asked for are no merge, and these 128 KiB stay in
  // the processor's cache where the slots do not.
  static constexpr int kFilterBits = 20;
  std::vector<std::uint64_t> filter_;
};

}  // namespace text
