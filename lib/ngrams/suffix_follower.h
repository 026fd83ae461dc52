#pragma once
// A context that grows token by token, and its longest suffix that an index has.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ngrams/ngram_index.h"

namespace ngrams {

/// Not thread safe; a copy goes on by itself.
class SuffixFollower {
 public:
  /// `with_next`: what it looks for stands in the index with a token behind it, in the same
  /// document; else it only stands there.
  explicit SuffixFollower(std::shared_ptr<const Index> index, bool with_next = true);

  void push(std::uint32_t token);
  void clear();
  /// The longest suffix of what was pushed that stands in the index: of length 0 where not even the
  /// last token does. Ranks are empty in parts that have shorter suffixes only.
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
  std::vector<State> states_;          // of each part, its own longest
  std::vector<std::uint32_t> recent_;  // the context's end, longer than any of them
};

}  // namespace ngrams
