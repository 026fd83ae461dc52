#pragma once
// The tokens that follow a match, with their counts: a distribution over the vocabulary.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ngrams/ngram_index.h"

namespace ngrams {

struct TokenCount {
  std::uint32_t token = 0;
  std::uint64_t count = 0;
  bool operator==(const TokenCount&) const = default;
};

/// Keeps what frequent contexts gave, within a bound. Not thread safe.
class NextTokens {
 public:
  /// `most_kept`: counts that are kept at most, 16 bytes each.
  explicit NextTokens(std::shared_ptr<const Index> index, std::size_t most_kept = 4 << 20);

  /// Ascending by token, none of them 0; valid until the next call.
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
