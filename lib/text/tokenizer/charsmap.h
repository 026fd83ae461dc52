#pragma once
// SentencePiece's compiled rules of normalisation: what stands in the place of which characters.
//
//   u32            bytes of the trie
//   the trie       units of Darts-clone's double array, u32 each: bits 0 to 7 and 31 a label, bit 8
//                  "a value follows", bits 10 to 30 an offset, times 256 where bit 9 is set; of a
//                  value bits 0 to 30, where its text begins
//   the rest       texts, each with a zero behind it

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// Const calls are thread safe.
class Charsmap {
 public:
  /// Throws Error{bad_data} for bytes of another form. Whatever they say, what is read stays
  /// inside.
  explicit Charsmap(std::string_view bytes);

  /// The rule for the longest start of `text` that has one: its bytes and what they become; 0
  /// bytes: there is none.
  struct Rule {
    std::size_t bytes = 0;
    std::string_view becomes{};
  };
  Rule find(std::string_view text) const;
  /// The whole text; false where nothing changes. Stops where more than `room` bytes are made.
  bool apply(std::string_view text, std::string& out, std::size_t room) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace text
