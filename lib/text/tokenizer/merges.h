#pragma once
// The merges of a byte-pair encoding (Sennrich et al. 2016) and their application to one word.

#include "core/base.h"
#include "core/mapped_file.h"

namespace text {

/// A Merge replaces two neighbouring symbols by one.
struct Merge {
  std::uint32_t left, right, result;
  bool operator==(const Merge&) const = default;
};

/// A MergeTable applies merges: it repeatedly merges the neighbouring pair of lowest rank, leftmost
/// first, until no pair has a merge. Takes O(n log n) time for n symbols. Const calls are thread
/// safe.
class MergeTable {
 public:
  static constexpr std::uint32_t kMaxIds = 1u << 21, kMaxMerges = (1u << 22) - 1;

  MergeTable() = default;
  /// Builds the table. The rank of a merge is its index, or that in `ranks`: the index of the first
  /// merge of equal rank. Throws Error{bad_data} for an id that is not below kMaxIds, and for more
  /// than kMaxMerges merges.
  explicit MergeTable(std::vector<Merge> merges, const std::vector<std::uint32_t>& ranks = {});

  const std::vector<Merge>& list() const { return merges_; }
  bool empty() const { return merges_.empty(); }

  /// A Scratch is the reusable memory of apply(). Each thread needs its own.
  struct Scratch {
    std::vector<std::uint32_t> next, previous, rank;
    std::vector<std::uint64_t> heap;
  };
  /// Merges `symbols`, all below kMaxIds, in place.
  void apply(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;  // the rank of a pair that has no merge
  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 21 | right;
  }
  static std::uint64_t hash_of(std::uint64_t pair) {
    return (pair * 0x9E3779B97F4A7C15u ^ pair >> 20) * 0xD6E8FEB86659FD93u;
  }
  std::uint32_t rank_of(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = pair_of(left, right), hash = hash_of(pair);
    const std::uint64_t bit = hash >> (64 - kFilterBits);
    if (!(filter_[bit >> 6] >> (bit & 63) & 1)) return kNone;
    for (std::size_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] >> 22 == pair + 1) return static_cast<std::uint32_t>(slots_[at] & kMaxMerges);
      if (slots_[at] == 0) return kNone;
    }
  }
  // For the initial symbols of a word, whose pairs are close together in small_.
  std::uint32_t first_rank_of(std::uint32_t left, std::uint32_t right) const {
    return (left | right) < kSmall ? small_[left * kSmall + right] : rank_of(left, right);
  }
  std::uint32_t result_of(std::uint32_t rank, std::uint32_t left, std::uint32_t right) const {
    const auto result = results_[rank];
    return result != kNone ? result : mixed_.at(pair_of(left, right));
  }
  void apply_short(std::vector<std::uint32_t>& symbols) const;
  void apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const;

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> results_;  // result by rank; kNone: it depends on the pair
  std::unordered_map<std::uint64_t, std::uint32_t> mixed_;  // by pair
  // (pair + 1) << 22 | rank, or 0 if free; open addressing, the size is a power of two, at most
  // half full. Memory access dominates the cost of merging, so a slot has only 8 bytes.
  core::HugeArray<std::uint64_t> slots_;
  int shift_ = 0;  // the top bits of a hash select the slot
  // A bit for each hash that is present. Most pairs have no merge, and these 128 KiB stay in the
  // processor's cache, unlike the slots.
  static constexpr int kFilterBits = 20;
  std::vector<std::uint64_t> filter_;
  // Ranks of the pairs of the first ids, which are the bytes in most tokenizers.
  static constexpr std::uint32_t kSmall = 256;
  std::vector<std::uint32_t> small_;
};

}  // namespace text
