#pragma once
// Tracks the longest suffix of a growing context that occurs in an index.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ngrams/ngram_index.h"

namespace ngrams {

/// A SuffixFollower receives the context token by token. Copies are independent. Not thread safe.
class SuffixFollower {
 public:
  /// With `with_next`, counts only occurrences that a token of the same document follows; otherwise
  /// counts all occurrences.
  explicit SuffixFollower(std::shared_ptr<const Index> index, bool with_next = true);

  void push(std::uint32_t token);
  void clear();
  /// Returns the match of the longest suffix of the context that occurs in the index; its length is
  /// 0 if even the last token does not occur. Ranks are empty in parts that have only shorter
  /// suffixes.
  Match match() const;
  std::uint64_t length() const;
  const Index& index() const { return *index_; }

 private:
  struct State {
    std::uint64_t length = 0;
    Ranks ranks;
  };
  bool stands(const SortedPart& part, const Ranks& ranks, std::uint64_t length) const;
  State longest(const SortedPart& part, std::uint64_t most) const;
  std::shared_ptr<const Index> index_;
  bool with_next_;
  std::vector<State> states_;          // the longest suffix in each part
  std::vector<std::uint32_t> recent_;  // end of the context, longer than any suffix
};

}  // namespace ngrams
