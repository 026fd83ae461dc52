#pragma once
// Remembers the tokens of words seen before: what makes encoding fast, since words repeat.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/huge_array.h"

namespace text {

/// Words of up to kMaxBytes bytes with up to kMaxTokens tokens, in buckets of two; a new word
/// drives out the older of its bucket. 8 MiB, touched only as far as used. Not thread safe.
class WordCache {
 public:
  static constexpr std::size_t kMaxBytes = 15, kMaxTokens = 3;

  /// A word as two numbers; the length stands in the last byte, so no two words are equal.
  struct Key {
    std::uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;  ///< zero: free (no word is empty)
    std::uint32_t tokens[kMaxTokens];
    std::uint32_t n_tokens;
  };

  WordCache() : buckets_(kBuckets) {}

  /// `bytes` of 1 to kMaxBytes; `end` is where readable memory ends.
  static Key key_of(const char* word, std::size_t bytes, const char* end) {
    Key key{0, 0};
    if (end - word >= 16) {
      std::memcpy(&key, word, 16);
      const std::uint64_t in_low = std::min<std::size_t>(bytes, 8);
      const std::uint64_t in_high = bytes - in_low;
      key.low &= ~std::uint64_t{0} >> (64 - 8 * in_low);
      key.high = in_high == 0 ? 0 : key.high & (~std::uint64_t{0} >> (64 - 8 * in_high));
    } else {
      std::memcpy(&key, word, bytes);
    }
    key.high |= static_cast<std::uint64_t>(bytes) << 56;
    return key;
  }

  /// Where to look for a key: to be asked for ahead of find(), since memory is the cost.
  static std::size_t place_of(const Key& key) {
    const std::uint64_t mixed = (key.low ^ key.high * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return (mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15u >> (64 - kBits);
  }
  void prefetch(std::size_t place) const { __builtin_prefetch(&buckets_[place]); }

  /// nullptr if the word is not here.
  const Entry* find(const Key& key, std::size_t place) const {
    const Bucket& bucket = buckets_[place];
    if (bucket.entries[0].key == key) return &bucket.entries[0];
    if (bucket.entries[1].key == key) return &bucket.entries[1];
    return nullptr;
  }

  /// tokens.size() <= kMaxTokens.
  void insert(const Key& key, std::size_t place, std::span<const std::uint32_t> tokens) {
    Bucket& bucket = buckets_[place];
    bucket.entries[1] = bucket.entries[0];
    Entry& entry = bucket.entries[0];
    entry = {key, {0, 0, 0}, static_cast<std::uint32_t>(tokens.size())};
    std::copy(tokens.begin(), tokens.end(), entry.tokens);
  }

 private:
  struct alignas(64) Bucket {
    Entry entries[2];
  };
  static constexpr int kBits = 17;
  static constexpr std::size_t kBuckets = std::size_t{1} << kBits;
  core::HugeArray<Bucket> buckets_;
};

/// Words encoded one after the other, from a WordCache where they were seen before. Short texts do
/// without the cache, which costs a few milliseconds to set up. Not thread safe.
class CachedWords {
 public:
  /// A text of so many bytes is next.
  void expect(std::size_t bytes) {
    seen_ += bytes;
    if (!cache_ && seen_ > kTextForCache) cache_ = std::make_unique<WordCache>();
  }

  /// Appends the tokens of the word [p, stop), not empty, to `out`: those in `tokens` once encode()
  /// has left them there, or as they were the last time. `readable` is where readable memory ends.
  template <class Encode>
  void append(const char* p, const char* stop, const char* readable,
              const std::vector<std::uint32_t>& tokens, std::vector<std::uint32_t>& out,
              const Encode& encode) {
    const auto bytes = static_cast<std::size_t>(stop - p);
    if (!cache_ || bytes > WordCache::kMaxBytes) {
      encode();
      out.insert(out.end(), tokens.begin(), tokens.end());
      return;
    }
    const auto key = WordCache::key_of(p, bytes, readable);
    const std::size_t place = WordCache::place_of(key);
    if (const auto* entry = cache_->find(key, place)) {
      out.insert(out.end(), entry->tokens, entry->tokens + entry->n_tokens);
      return;
    }
    encode();
    if (tokens.size() <= WordCache::kMaxTokens) cache_->insert(key, place, tokens);
    out.insert(out.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t kTextForCache = 16384;
  std::size_t seen_ = 0;
  std::unique_ptr<WordCache> cache_;
};

}  // namespace text
