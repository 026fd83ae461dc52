#pragma once
// One part of an index, mapped: a text, and its suffixes in order.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "ngrams/mapped_array.h"
#include "ngrams/ngrams_manifest.h"

namespace ngrams {

/// Ranks [begin, end) among the suffixes of a part: those that begin alike.
struct Ranks {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool operator==(const Ranks&) const = default;
};

/// Thread safe. Where its bytes are damaged answers are wrong, but every place is inside the text.
class SortedPart {
 public:
  /// Throws as MappedArray does, and Error{bad_data} where the counts of first tokens cannot be.
  SortedPart(const std::string& folder, std::size_t number, const PartFacts& facts,
             std::uint64_t vocabulary);

  const PartFacts& facts() const { return facts_; }
  std::uint32_t mark() const { return mark_; }
  /// Of the text; behind it there are marks.
  std::uint32_t token(std::uint64_t place) const {
    if (place >= text_size_) return mark_;
    switch (width_) {
      case 1:
        return std::to_integer<std::uint32_t>(text_[place]);
      case 2:
        return load<std::uint16_t>(place);
      default:
        return load<std::uint32_t>(place);
    }
  }
  std::uint64_t text_size() const { return text_size_; }
  /// Where the suffix of this rank begins.
  std::uint64_t place(std::uint64_t rank) const { return suffixes_[rank]; }
  /// The token that stands `depth` tokens behind its beginning.
  std::uint32_t token_of(std::uint64_t rank, std::uint64_t depth) const {
    return token(suffixes_[rank] + depth);
  }

  /// All suffixes.
  Ranks all() const { return {0, suffixes_.size()}; }
  /// Those that begin with this token.
  Ranks first(std::uint32_t token) const;
  /// Those that begin with these tokens.
  Ranks find(std::span<const std::uint32_t> tokens) const;
  /// Of ranks whose suffixes agree in `depth` tokens, those that go on with this one.
  Ranks extend(Ranks ranks, std::uint64_t depth, std::uint32_t token) const;
  /// The end of the run that `begin` is of: ranks that go on alike behind `depth` tokens.
  std::uint64_t run_end(Ranks ranks, std::uint64_t depth) const;
  /// Of such ranks how many go on within their document.
  std::uint64_t followers(Ranks ranks, std::uint64_t depth) const;
  bool goes_on(Ranks ranks, std::uint64_t depth) const {
    return !ranks.empty() && token_of(ranks.begin, depth) != mark_;
  }

  /// Every byte against the hashes. Throws Error{bad_data}.
  void verify() const;

 private:
  template <class T>
  std::uint32_t load(std::uint64_t place) const {
    T value;
    std::memcpy(&value, text_ + place * sizeof(T), sizeof(T));
    return value;
  }
  PartFacts facts_;
  std::uint32_t mark_;
  std::size_t width_;
  MappedArray text_file_, suffixes_file_, firsts_file_;
  const std::byte* text_;
  std::uint64_t text_size_;
  std::span<const std::uint32_t> suffixes_, firsts_;
};

}  // namespace ngrams
