#pragma once
// Prepares a text for splitting: finds added tokens, normalises the text between them, and
// determines where such a text may be cut.

#include "text/tokenizer/gpt2_split.h"
#include "text/tokenizer/normalizer.h"

namespace text {

/// TextSteps holds the added tokens and the normalizer. Const calls are thread safe.
class TextSteps {
 public:
  TextSteps() = default;
  /// Takes the steps. `symbols` are found in the normalised text as they are. Throws
  /// Error{bad_data} for a replacement of more than one character.
  TextSteps(
      std::vector<AddedToken> added, Normalizer normalizer, std::vector<AddedToken> symbols = {});

  /// Returns these steps with special tokens enabled: those of added() or, if that is empty,
  /// `special`.
  TextSteps with_special(const std::vector<AddedToken>& special) const;

  /// Returns true if there is nothing to do, except possibly after with_special().
  bool plain() const { return plain_; }
  /// Returns true if there is nothing to do.
  bool empty() const { return normalizer_.empty() && raw_.empty() && normalized_.empty(); }
  const std::vector<AddedToken>& added() const { return added_; }
  const Normalizer& normalizer() const { return normalizer_; }

  /// Calls take_text(piece, place) for each non-empty, normalised text between added tokens and
  /// take_token(id) for each token, in order. `continued` means that the text follows a cut. Throws
  /// Error{bad_data} if the normalizer's output is too long.
  void run(std::string_view text, bool continued,
      const std::function<void(std::string_view, PiecePosition)>& take_text,
      const std::function<void(std::uint32_t)>& take_token) const;

  /// A Parts function returns true if a normalised text may be split and merged independently on
  /// both sides of a position, given the characters around it.
  using Parts = std::function<bool(std::uint32_t left, std::uint32_t right)>;
  /// Returns the last position in the first kMaxPretokenBytes where these steps and `parts` allow a
  /// cut (see Tokenizer::cut). Returns a character boundary after that many bytes if there is no
  /// such position, or if the search took too long for the length of the longest added token.
  const char* cut(const char* begin, const char* end, const Parts& parts) const;
  /// Returns how many bytes around a position affect whether a text may be cut there.
  std::ptrdiff_t reach() const { return reach_; }
  /// Returns true if these steps change nothing in [begin, end) and find no token there or across
  /// `at`.
  bool leave(const char* begin, const char* end, const char* at) const;

 private:
  void find(const std::vector<AddedToken>& tokens);
  // Adds the number of inspected bytes to `work`.
  bool may_cut(const char* begin, const char* at, const char* end, const Parts& parts,
      std::ptrdiff_t& work) const;

  bool plain_ = true;
  std::vector<AddedToken> added_, symbols_;
  Normalizer normalizer_;
  AddedMatcher raw_, normalized_;
  AddedMatcher either_;  // normalised tokens, as at the start of a piece and as inside one
  std::ptrdiff_t reach_ = 0;
};

/// Returns the position of a cut if nothing else allows one: the first character boundary from
/// kMaxPretokenBytes on; nullptr if the text is shorter.
const char* forced_cut(const char* begin, const char* end);

/// Calls take(part, continued) for the parts of a text between positions where `tokenizer` allows a
/// cut, in order. So only text without such a position is ever longer in memory than
/// kMaxPretokenBytes.
template <class Tokenizer, class Take>
void in_parts(const Tokenizer& tokenizer, std::string_view text, bool continued, const Take& take) {
  while (text.size() > kMaxPretokenBytes) {
    const char* const cut = tokenizer.cut(text.data(), text.data() + text.size());
    if (cut == nullptr) break;
    const auto bytes = static_cast<std::size_t>(cut - text.data());
    take(text.substr(0, bytes), continued);
    text.remove_prefix(bytes);
    continued = true;
  }
  take(text, continued);
}

}  // namespace text
