#pragma once
// Counts the tokens that follow a match: a distribution over the vocabulary.
// Tracks the longest suffix of a growing context that occurs in an index.

#include "ngrams/ngram_index.h"

namespace ngrams {

/// A TokenCount is a token and how often it follows.
struct TokenCount {
  std::uint32_t token = 0;
  std::uint64_t count = 0;
  bool operator==(const TokenCount&) const = default;
};

/// A NextTokens caches the results for frequent contexts, within a bound. Not thread safe.
class NextTokens {
 public:
  /// `most_kept` is the maximum number of cached counts, 16 bytes each.
  explicit NextTokens(std::shared_ptr<const Index> index, std::size_t most_kept = 4 << 20);

  /// Returns the counts of a match, ascending by token, without zeros; valid until the next call.
  const std::vector<TokenCount>& of(const Match& match);

 private:
  struct Key {
    std::size_t part;
    std::uint64_t length, begin;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  void count(const Match& match);
  std::shared_ptr<const Index> index_;
  std::size_t most_kept_, n_kept_ = 0;
  std::unordered_map<Key, std::vector<TokenCount>, Hash> kept_;
  std::vector<TokenCount> counts_, part_counts_, sum_;
};

/// A SuffixFollower receives the context token by token. Copies are independent. Not thread safe.
class SuffixFollower {
 public:
  /// With `with_next`, counts only occurrences that a token of the same document follows; otherwise
  /// counts all occurrences.
  explicit SuffixFollower(std::shared_ptr<const Index> index, bool with_next = true);

  /// Reads a token. Returns how often it followed match(), at the cost of reading it alone.
  std::uint64_t push(std::uint32_t token);
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
