#pragma once
// Counts the pairs of neighbouring symbols in a set of words and updates the counts with each
// merge, which visits only the words that contain the pair.

#include "core/base.h"

namespace text {

/// A BpeLearner holds words as sequences of symbols.
class BpeLearner {
 public:
  /// Adds a word that occurs `count` times in the text.
  void add(std::span<const std::uint32_t> symbols, std::uint64_t count);

  struct Pair {
    std::uint32_t left, right;
    std::int64_t count;
  };
  /// Returns the most frequent pair; ties are broken by the lower left symbol, then the lower
  /// right. Returns nothing if no pair is left. The first call counts all pairs; add() must not
  /// follow it.
  std::optional<Pair> best();

  /// Replaces each pair left, right by `result`, from left to right in every word.
  void merge(std::uint32_t left, std::uint32_t right, std::uint32_t result);

 private:
  struct Word {
    std::uint64_t begin;  // index in symbols_
    std::uint32_t size;
    std::int64_t count;
  };
  struct Entry {
    std::uint64_t pair = 0;
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that contain the pair, or did before a merge
    bool touched = false;              // the entry is in touched_
  };
  struct Candidate {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  void count_all();
  std::uint32_t entry_of(std::uint64_t pair);
  void change(std::uint32_t left, std::uint32_t right, std::int64_t by, std::uint32_t word);
  void grow();

  std::vector<std::uint32_t> symbols_;
  std::vector<Word> words_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;    // entries by hash of their pair, open addressing
  std::vector<Candidate> heap_;         // counts may be outdated, and are then too high
  std::vector<std::uint32_t> touched_;  // entries that grew in this merge
  bool counted_ = false;
};

}  // namespace text
