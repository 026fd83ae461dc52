#pragma once
// What is done to a text before it is split: added tokens are found, what is between them is
// normalised. And where such a text may be cut.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/gpt2_split.h"
#include "text/tokenizer/normalizer.h"

namespace text {

/// Const calls are thread safe.
class TextSteps {
 public:
  TextSteps() = default;
  /// Throws Error{bad_data} for a replacement of more than one character.
  TextSteps(std::vector<AddedToken> added, Normalizer normalizer);

  /// These steps, but special tokens are found too: those of added(), or where that is empty
  /// `special`.
  TextSteps with_special(const std::vector<AddedToken>& special) const;

  /// Nothing is done, but perhaps by with_special().
  bool plain() const { return plain_; }
  /// Nothing is done.
  bool empty() const { return normalizer_.empty() && raw_.empty() && normalized_.empty(); }
  const std::vector<AddedToken>& added() const { return added_; }
  const Normalizer& normalizer() const { return normalizer_; }

  /// Where a piece between added tokens stands.
  enum class Place : std::uint8_t {
    begins_text,  ///< nothing of the text is before it
    continues,    ///< it is the rest of a piece that was cut
    after_token,
  };
  /// take_text(piece, place) for what is between added tokens, normalised, not empty;
  /// take_token(id) for each token; in order. `continued`: the text is the rest of one that was
  /// cut. Throws Error{bad_data} where the normalizer makes too much of the text.
  void run(std::string_view text, bool continued,
           const std::function<void(std::string_view, Place)>& take_text,
           const std::function<void(std::uint32_t)>& take_token) const;

  /// True if a normalised text may be split and merged on both sides of a place by itself, by the
  /// characters around it.
  using Parts = std::function<bool(std::uint32_t left, std::uint32_t right)>;
  /// See Tokenizer::cut: the last place in the first kMaxPretokenBytes where these steps and
  /// `parts` allow it; a character border behind so many bytes if they never do, or if too many
  /// places had to be tried for the length of the longest added token.
  const char* cut(const char* begin, const char* end, const Parts& parts) const;
  /// Bytes around a place that bear on whether a text may be cut there.
  std::ptrdiff_t reach() const { return reach_; }
  /// True if these steps change nothing in [begin, end) and find no token there or across `at`.
  bool leave(const char* begin, const char* end, const char* at) const;

 private:
  void find(const std::vector<AddedToken>& tokens);
  // `work` is added the bytes that were looked at.
  bool may_cut(const char* begin, const char* at, const char* end, const Parts& parts,
               std::ptrdiff_t& work) const;

  bool plain_ = true;
  std::vector<AddedToken> added_;
  Normalizer normalizer_;
  AddedMatcher raw_, normalized_;
  AddedMatcher either_;  // the normalised ones as at the start of a piece and as within it
  std::ptrdiff_t reach_ = 0;
};

/// The place for a cut where nothing else allows one: the first character border from
/// kMaxPretokenBytes on; nullptr if it is not there yet.
const char* forced_cut(const char* begin, const char* end);

/// take(part, continued) for the parts of a text between places where `tokenizer` lets it be cut,
/// in order: only text without such a place is ever longer in memory than kMaxPretokenBytes.
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
