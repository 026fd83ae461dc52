#pragma once
// Counts the tokens that follow a match: a distribution over the vocabulary.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

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

}  // namespace ngrams
