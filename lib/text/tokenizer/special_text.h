#pragma once
// Handles the texts of special tokens in input: encodes them as special tokens, or reports them if
// they are encoded as ordinary text.

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// Returns a copy of the tokenizer that encodes the content of a special token in a text as that
/// token. Throws Error{unavailable} for word and units tokenizers.
TokenizerPtr parsing_special(const Tokenizer& tokenizer);

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
