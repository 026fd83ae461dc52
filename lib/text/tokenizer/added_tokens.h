#pragma once
// Tokens that are found in a text before it is split (Hugging Face's added tokens): at each place
// the longest, from left to right. Special ones are no text here and are passed over.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace text {

struct AddedToken {
  std::uint32_t id;
  std::string content;
  bool special = false;
  bool normalized = false;   ///< found in the normalised text, after that content is normalised
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space behind it
  bool single_word = false;  ///< not beside a character of a word
  bool in_model = false;     ///< the model's vocabulary lists it too
  bool operator==(const AddedToken&) const = default;
};

/// Finds some tokens, in a time that grows with the length of the text whatever they are: an
/// automaton of Aho and Corasick (1975) of the contents read backwards, which goes through the text
/// from its end and knows at each place the longest token that starts there. Const calls are thread
/// safe.
class AddedMatcher {
 public:
  AddedMatcher() = default;
  /// Tokens with the contents to be found (normalised, if they are); empty contents are left out.
  /// Throws Error{bad_data} for contents that take more than kMaxNodes nodes.
  explicit AddedMatcher(std::vector<AddedToken> tokens);

  /// Nodes of the automaton, of 13 bytes each: at most one for each byte of the contents.
  static constexpr std::size_t kMaxNodes = std::size_t{32} << 20;

  /// True if no token can be found.
  bool empty() const { return !finds_; }
  std::size_t longest() const { return longest_; }

  /// Calls take_text(piece) for what is between the tokens, not empty, and take_token(id) for each
  /// token, in order.
  void each(std::string_view text, const std::function<void(std::string_view)>& take_text,
            const std::function<void(std::uint32_t)>& take_token) const;
  /// False if no token in `text` covers or touches the place `at`, with the white space that it may
  /// take, nor one beyond an end of `text`.
  bool touches(std::string_view text, std::size_t at) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void grow_trie();
  void link_failures();
  // The state behind one more byte, to the left of those before.
  std::uint32_t next_state(std::uint32_t state, unsigned char byte) const;
  // take(at, token) for the longest token at each place where one starts, from the last to the
  // first.
  template <class Take>
  void each_start(std::string_view text, const Take& take) const;

  std::vector<AddedToken> tokens_;  // by content
  // The nodes by their depth, 0 the root: the children of one are side by side, by their bytes.
  std::vector<std::uint32_t> first_child_;  // of a node, and one more
  std::vector<unsigned char> bytes_;
  std::vector<std::uint32_t> failures_;     // the longest other node that ends as this one
  std::vector<std::uint32_t> longest_at_;   // the longest token that a node ends with, or kNone
  std::array<std::uint32_t, 256> roots_{};  // the children of the root
  std::size_t longest_ = 0;
  bool finds_ = false, strips_left_ = false, strips_right_ = false;
};

}  // namespace text
