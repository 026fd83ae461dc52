#pragma once
// Caches the tokens of words, which speeds up encoding because words repeat.

#include "core/base.h"
#include "core/mapped_file.h"

namespace text {

/// A WordCache holds words of up to kMaxBytes bytes and kMaxTokens tokens in buckets of two; a new
/// word replaces the older one in its bucket. It takes 8 MiB, which are touched only as used. Not
/// thread safe.
class WordCache {
 public:
  static constexpr std::size_t kMaxBytes = 15, kMaxTokens = 3;

  /// A Key is a word as two numbers. The last byte is the length, so different words have different
  /// keys.
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

  /// Returns the key of a word of 1 to kMaxBytes bytes; `end` is the end of readable memory.
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

  /// Returns the index of a key's bucket. Prefetch it before find(), because memory latency
  /// dominates.
  static std::size_t place_of(const Key& key) {
    const std::uint64_t mixed = (key.low ^ key.high * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return (mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15u >> (64 - kBits);
  }
  void prefetch(std::size_t place) const { __builtin_prefetch(&buckets_[place]); }

  /// Returns the entry of a word; nullptr if it is not cached.
  const Entry* find(const Key& key, std::size_t place) const {
    const Bucket& bucket = buckets_[place];
    if (bucket.entries[0].key == key) return &bucket.entries[0];
    if (bucket.entries[1].key == key) return &bucket.entries[1];
    return nullptr;
  }

  /// Inserts a word; tokens.size() <= kMaxTokens.
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

/// CachedWords encodes words one at a time and uses a WordCache for repeated words. Short texts do
/// not use the cache, whose allocation takes a few milliseconds. Not thread safe.
class CachedWords {
 public:
  /// Announces a text of `bytes` bytes.
  void expect(std::size_t bytes) {
    seen_ += bytes;
    if (!cache_ && seen_ > kTextForCache) cache_ = std::make_unique<WordCache>();
  }

  /// Appends the tokens of the non-empty word [p, stop) to `out`: cached tokens, or those that
  /// encode() writes to `tokens`; it returns whether they may be cached. `readable` is the end of
  /// readable memory. Without `caches`, the cache is left out.
  template <class Encode>
  void append(const char* p, const char* stop, const char* readable,
      const std::vector<std::uint32_t>& tokens, std::vector<std::uint32_t>& out,
      const Encode& encode, bool caches = true) {
    const auto bytes = static_cast<std::size_t>(stop - p);
    if (!cache_ || !caches || bytes > WordCache::kMaxBytes) {
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
    const bool keeps = encode();
    if (keeps && tokens.size() <= WordCache::kMaxTokens) cache_->insert(key, place, tokens);
    out.insert(out.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t kTextForCache = 16384;
  std::size_t seen_ = 0;
  std::unique_ptr<WordCache> cache_;
};

}  // namespace text
