#pragma once
// Reads SentencePiece's compiled normalisation rules, which replace sequences of characters.
//
//   u32            bytes of the trie
//   the trie       units of Darts-clone's double array, u32 each: bits 0 to 7 and 31 a label, bit 8
//                  "a value follows", bits 10 to 30 an offset, times 256 if bit 9 is set; in a
//                  value, bits 0 to 30 are the offset of its text
//   the rest       texts, each followed by a zero

#include "core/base.h"

namespace text {

/// A Charsmap is a set of rules. Const calls are thread safe.
class Charsmap {
 public:
  /// Parses the rules. Throws Error{bad_data} for an invalid layout. Lookups never read out of
  /// bounds, whatever the bytes are.
  explicit Charsmap(std::string_view bytes);

  /// A Rule is a number of bytes and their replacement. find() returns the rule for the longest
  /// prefix of `text` that has one; 0 bytes if there is none.
  struct Rule {
    std::size_t bytes = 0;
    std::string_view becomes{};
  };
  Rule find(std::string_view text) const;
  /// Applies the rules to a text. Returns false if nothing changes. Stops once the output exceeds
  /// `room` bytes.
  bool apply(std::string_view text, std::string& out, std::size_t room) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace text
