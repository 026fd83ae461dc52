#pragma once
// Makes inputs from a corpus. Equal seed and number give the same input on every machine.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace fuzz {

using Bytes = std::vector<std::byte>;

/// Changes files of a corpus in one to four places: bits, bytes, little-endian numbers, words of
/// text formats, and pieces that are removed, repeated or taken from another file.
class Mutator {
 public:
  /// `corpus` must not be empty and must outlive the mutator.
  explicit Mutator(const std::vector<Bytes>& corpus) : corpus_(corpus) {}

  Bytes make(std::uint64_t seed, std::uint64_t number) const {
    core::Rng rng(seed, number);
    Bytes bytes = any_file(rng);
    for (auto times = 1 + rng.below(4); times > 0; --times) change(bytes, rng);
    return bytes;
  }

 private:
  const Bytes& any_file(core::Rng& rng) const { return corpus_[rng.below(corpus_.size())]; }

  void change(Bytes& bytes, core::Rng& rng) const {
    const auto kind = rng.below(9);
    if (bytes.empty() || kind == 0) return splice(bytes, rng);
    const auto at = rng.below(bytes.size());
    auto& byte = bytes[at];
    switch (kind) {
      case 1:
      case 2: byte ^= static_cast<std::byte>(1u << rng.below(8)); break;
      case 3: byte = static_cast<std::byte>(rng.below(256)); break;
      case 4:
      case 5: number(bytes, at, rng); break;
      case 6: word(bytes, at, rng); break;
      case 7: bytes.resize(at); break;
      default: move(bytes, at, rng);
    }
  }

  // Joins the front of `bytes` with the end of any file of the corpus.
  void splice(Bytes& bytes, core::Rng& rng) const {
    const Bytes& other = any_file(rng);
    bytes.resize(rng.below(bytes.size() + 1));
    const auto from = static_cast<std::ptrdiff_t>(rng.below(other.size() + 1));
    bytes.insert(bytes.end(), other.begin() + from, other.end());
  }

  // Sets a number, possibly a length or an offset, to an extreme or changes it by a little.
  static void number(Bytes& bytes, std::size_t at, core::Rng& rng) {
    const std::size_t width = std::size_t{1} << rng.below(4);
    if (rng.below(2) == 0) at -= at % width;
    const std::size_t n = std::min(width, bytes.size() - at);
    const std::uint64_t extremes[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        1ull << 32, 1ull << 40, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull, bytes.size(), at,
        ~0ull << 32, 0x7ff0ull << 48};
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes[at], n);
    if (rng.below(2) == 0) value += rng.below(17) - 8;
    else value = extremes[rng.below(std::size(extremes))];
    std::memcpy(&bytes[at], &value, n);
  }

  // Replaces a number or a letter by a token with a meaning in a text format.
  static void word(Bytes& bytes, std::size_t at, core::Rng& rng) {
    constexpr std::string_view words[] = {"0", "-1", "1e999", "18446744073709551615",
        "9223372036854775808", "4294967296", "-0.0", "NaN", "null", "true", "[]", "{}", "\"\"",
        "[[[[", "\\u0000", "\\ud800", "\n", "\t", ",", ":", "\xff", "(0, 0)"};
    const auto is_digit = [&](std::size_t i) {
      return i < bytes.size() && bytes[i] >= std::byte{'0'} && bytes[i] <= std::byte{'9'};
    };
    // The next number nearby, if there is one.
    std::size_t first = at;
    while (first < bytes.size() && first < at + 64 && !is_digit(first)) ++first;
    if (!is_digit(first)) first = at;
    std::size_t last = first + 1;
    while (is_digit(last)) ++last;
    const auto text = words[rng.below(std::size(words))];
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(last);
    const auto hole = bytes.erase(begin, end);
    bytes.insert(hole, data, data + text.size());
  }

  // Removes a piece, or repeats it at the same or another place.
  static void move(Bytes& bytes, std::size_t at, core::Rng& rng) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto n =
        static_cast<std::ptrdiff_t>(1 + rng.below(std::min<std::size_t>(bytes.size() - at, 64)));
    const Bytes piece(begin, begin + n);
    if (rng.below(2) == 0) bytes.erase(begin, begin + n);
    const auto to = static_cast<std::ptrdiff_t>(rng.below(bytes.size() + 1));
    if (rng.below(3) > 0) bytes.insert(bytes.begin() + to, piece.begin(), piece.end());
  }

  const std::vector<Bytes>& corpus_;
};

}  // namespace fuzz
