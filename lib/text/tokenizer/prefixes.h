#pragma once
// Finds the tokens that a text begins with.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// Prefixes holds tokens as a tree of their bytes.
class Prefixes {
 public:
  Prefixes() = default;
  /// Takes the ids of the tokens, none of which is empty.
  Prefixes(const Vocabulary& vocabulary, std::vector<std::uint32_t> ids);

  /// Returns the length of the longest token in bytes.
  std::size_t longest() const { return longest_; }

  /// Calls take(bytes, id) for each of the tokens that a text begins with, from the shortest to the
  /// longest.
  template <class Take> void each(std::string_view text, const Take& take) const {
    std::size_t bytes = 0;
    const Node* node = nodes_.data();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const auto next = std::span(nodes_).subspan(node->first, node->count);
      const auto found = next.size() == 256 ? next.begin() + byte
                                            : std::ranges::lower_bound(next, byte, {}, &Node::byte);
      if (found == next.end() || found->byte != byte) return;
      node = &*found, ++bytes;
      if (node->id != kNone) take(bytes, node->id);
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // The tokens that begin with the bytes on the way to it; the next ones are nodes side by side.
  struct Node {
    std::uint32_t id = kNone, first = 0;  // of the token that ends here; the next nodes
    std::uint16_t count = 0;              // of the next nodes
    std::uint8_t byte = 0;
  };
  std::vector<Node> nodes_{Node{}};
  std::size_t longest_ = 0;
};

}  // namespace text
