#pragma once
// The texts of special tokens: as tokens, or noticed where texts are encoded without them.

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// The same tokenizer, but where a text has the content of a special token it is that token. Throws
/// Error{unavailable} for words and units.
TokenizerPtr parsing_special(const Tokenizer& tokenizer);

/// The special tokens as a file that says nothing else of them adds them.
std::vector<AddedToken> as_added(const std::vector<SpecialToken>& special);

/// A tokenizer's parts so that the texts of its special tokens are these tokens.
template <class Parts>
Parts parts_parsing_special(Parts parts, const Tokenizer& of) {
  parts.special = of.special_tokens();
  parts.around = of.text_template();
  parts.steps = parts.steps.with_special(as_added(of.special_tokens()));
  return parts;
}

/// Finds the text of a special token. Const calls are thread safe.
class SpecialText {
 public:
  /// Of words and units none is looked for: there they are words of a text as others are.
  explicit SpecialText(const Tokenizer& tokenizer);
  /// The first that stands in `text`; empty: none does.
  std::string_view find(std::string_view text) const;
  /// What a user should know where `found` was encoded as ordinary text; `where` names the text.
  static std::string note(const std::string& where, std::string_view found);

 private:
  std::vector<std::string> contents_;
  std::string firsts_;      // their first bytes
  bool seconds_[256] = {};  // their second ones
};

}  // namespace text
