#pragma once
// Tokens that are found in a text before it is split (Hugging Face's added tokens): at each place
// the longest, from left to right. Special ones are no text here and are passed over.

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

/// Finds some tokens. Const calls are thread safe.
class AddedMatcher {
 public:
  AddedMatcher() = default;
  /// Tokens with the contents to be found (normalised, if they are); empty contents are left out.
  explicit AddedMatcher(std::vector<AddedToken> tokens);

  /// True if no token can be found.
  bool empty() const { return !finds_; }
  std::size_t longest() const { return longest_; }

  /// Calls take_text(piece) for what is between the tokens, not empty, and take_token(id) for each
  /// token, in order.
  void each(std::string_view text, const std::function<void(std::string_view)>& take_text,
            const std::function<void(std::uint32_t)>& take_token) const;
  /// True if somewhere in `text` a token stands that, with the white space that it takes, covers or
  /// touches the place `at`, or may stand there beyond an end of `text`.
  bool touches(std::string_view text, std::size_t at) const;

 private:
  // The longest token that starts at `at`; nullptr if there is none.
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;  // by content
  // The tokens that start with each byte: tokens_[first_[b], first_[b + 1]).
  std::vector<std::uint32_t> first_;
  std::size_t longest_ = 0;
  bool finds_ = false, strips_left_ = false, strips_right_ = false;
};

}  // namespace text
