#pragma once
// Handles the texts of special tokens in input: encodes them as special tokens, or reports them if
// they are encoded as ordinary text.
// Finds added tokens (Hugging Face's term) in a text before it is split: the longest at each
// position, from left to right. The texts of special tokens are ordinary text by default and are
// not looked for.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// An AddedToken is one added token and its matching rules.
struct AddedToken {
  std::uint32_t id;
  std::string content;
  bool special = false;
  /// Found in the normalised text; the content is normalised too.
  bool normalized = false;
  bool lstrip = false;       ///< includes the white space before it
  bool rstrip = false;       ///< includes the white space after it
  bool single_word = false;  ///< not adjacent to a word character
  bool in_model = false;     ///< the model's vocabulary contains it too
  bool operator==(const AddedToken&) const = default;
};

/// An AddedMatcher finds a set of tokens in time proportional to the length of the text. It is an
/// Aho-Corasick automaton (1975) of the reversed contents: it scans the text from its end and
/// yields, for each position, the longest token that starts there. Const calls are thread safe.
class AddedMatcher {
 public:
  AddedMatcher() = default;
  /// Builds the automaton from tokens with the contents to find (normalised, where that applies);
  /// empty contents are ignored. Throws Error{bad_data} for contents that need more than kMaxNodes
  /// nodes.
  explicit AddedMatcher(std::vector<AddedToken> tokens);

  /// The most nodes of the automaton, at 13 bytes each. Each byte of the contents needs at most
  /// one.
  static constexpr std::size_t kMaxNodes = std::size_t{32} << 20;

  /// Returns true if there is no token to find.
  bool empty() const { return !finds_; }
  std::size_t longest() const { return longest_; }

  /// Calls take_text(piece) for each non-empty text between tokens and take_token(id) for each
  /// token, in order.
  void each(std::string_view text, const std::function<void(std::string_view)>& take_text,
      const std::function<void(std::uint32_t)>& take_token) const;
  /// A Start is the offset of a token in a text, and the token's bytes.
  struct Start {
    std::size_t at, bytes;
  };
  /// Returns the longest token, special or not, at each position where one starts, in order.
  std::vector<Start> starts(std::string_view text) const;
  /// Returns false if no token in `text`, including the white space around it that it may take,
  /// covers or touches the offset `at`, and none could extend beyond either end of `text`.
  bool touches(std::string_view text, std::size_t at) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void grow_trie();
  void link_failures();
  // Returns the state after one more byte, to the left of the previous ones.
  std::uint32_t next_state(std::uint32_t state, unsigned char byte) const;
  // Calls take(at, token) with the longest token at each position where one starts, from the last
  // position to the first.
  template <class Take> void each_start(std::string_view text, const Take& take) const;

  std::vector<AddedToken> tokens_;  // by content
  // The nodes in order of depth; 0 is the root. The children of a node are adjacent and sorted by
  // their bytes.
  std::vector<std::uint32_t> first_child_;  // first child of each node, and one more
  std::vector<unsigned char> bytes_;
  std::vector<std::uint32_t> failures_;     // longest other node that is a suffix of this one
  std::vector<std::uint32_t> longest_at_;   // longest token that is a suffix of a node, or kNone
  std::array<std::uint32_t, 256> roots_{};  // children of the root
  std::size_t longest_ = 0;
  bool finds_ = false, strips_left_ = false, strips_right_ = false;
};

/// Returns the special tokens as added tokens with the default rules of a file that sets none.
std::vector<AddedToken> as_added(const std::vector<SpecialToken>& special);

/// Changes a tokenizer's parts so that the texts of its special tokens are encoded as these tokens.
template <class Parts> Parts parts_parsing_special(Parts parts, const Tokenizer& of) {
  parts.special = of.special_tokens();
  parts.around = of.text_template();
  parts.steps = parts.steps.with_special(as_added(of.special_tokens()));
  return parts;
}

/// A SpecialText finds the texts of special tokens. Const calls are thread safe.
class SpecialText {
 public:
  /// Collects the texts. Word and units tokenizers have none, because these texts are ordinary
  /// words there.
  explicit SpecialText(const Tokenizer& tokenizer);
  /// Returns the first text of a special token in `text`; empty if there is none.
  std::string_view find(std::string_view text) const;
  /// Returns what a user should know if `found` was encoded as ordinary text; `where` names the
  /// text.
  static std::string note(const std::string& where, std::string_view found);

 private:
  std::vector<std::string> contents_;
  std::string firsts_;      // the contents' first bytes
  bool seconds_[256] = {};  // the contents' second bytes
};

}  // namespace text
