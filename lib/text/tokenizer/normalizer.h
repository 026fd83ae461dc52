#pragma once
// Normalises a text before it is split: Unicode normal forms, lower case, a prefix, replacement of
// a character.
// Reads SentencePiece's compiled normalisation rules, which replace sequences of characters.
//
//   u32            bytes of the trie
//   the trie       units of Darts-clone's double array, u32 each: bits 0 to 7 and 31 a label, bit 8
//                  "a value follows", bits 10 to 30 an offset, times 256 if bit 9 is set; in a
//                  value, bits 0 to 30 are the offset of its text
//   the rest       texts, each followed by a zero

#include "text/tokenizer/special_text.h"

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

/// A NormalStep is one step of the normalisation.
struct NormalStep {
  enum class What : std::uint8_t {
    nfc,
    nfkc,
    lowercase,
    prepend,
    replace,
    trim,      ///< removes spaces at both ends
    squeeze,   ///< replaces several spaces by one
    charsmap,  ///< applies SentencePiece's compiled rules
  };
  What what;
  std::string from;  ///< replace: one character; charsmap: the rules (above)
  std::string to;    ///< replace, prepend
  bool operator==(const NormalStep&) const = default;
};

/// Appends a text with `mark` for each space.
void append_marked(std::string_view text, std::string_view mark, std::string& out);

/// The patterns that mean trim and squeeze in a tokenizer.json.
inline constexpr std::string_view kTrimmed = R"(\A +| +\z)", kSqueezed = " {2,}";

/// PiecePosition says where a piece of a text, between added tokens, is.
enum class PiecePosition : std::uint8_t {
  begins_text,  ///< at the beginning of the text
  continues,    ///< after a cut
  after_token,
};

/// A Normalizer applies a sequence of steps. Bytes that are not UTF-8 stay unchanged. Const calls
/// are thread safe.
class Normalizer {
 public:
  Normalizer() = default;
  /// Takes the steps. Throws Error{bad_data} for corrupt rules.
  explicit Normalizer(std::vector<NormalStep> steps);
  /// Takes the steps of a tokenizer.model: charsmap, trim with squeeze, prepend, and replace of a
  /// space, all optional but the last. They run in one pass, as in sentencepiece: rules and spaces
  /// leave the texts of `symbols` whole, and trim also removes marks at the end. `prefix_once`:
  /// only a piece that begins a text, and not with a mark, gets the prefix. Throws Error{bad_data}
  /// for other steps.
  Normalizer(
      std::vector<NormalStep> steps, const std::vector<AddedToken>& symbols, bool prefix_once);

  /// Returns whether the steps are those of a tokenizer.model, in one pass.
  bool is_one_pass() const { return one_pass_; }
  bool prefix_once() const { return prefix_once_; }
  bool empty() const { return steps_.empty(); }
  const std::vector<NormalStep>& steps() const { return steps_; }

  /// The default limit of the output for a number of input bytes. NFKC makes a character at most 11
  /// times as long.
  static constexpr std::size_t kGrowth = 64, kGrowthAtFirst = 4096;
  static constexpr std::size_t room_of(std::size_t bytes) {
    return kGrowth * bytes + kGrowthAtFirst;
  }

  /// Returns the normalised text: `text` itself if nothing changes, else the contents of `buffer`,
  /// which must not hold `text`. A piece that continues gets no prefix. Throws Error{bad_data} if a
  /// step would make more than `room` bytes.
  std::string_view apply(
      std::string_view text, PiecePosition place, std::string& buffer, std::size_t room) const;
  std::string_view apply(std::string_view text, bool begins, std::string& buffer) const {
    return apply(text, begins ? PiecePosition::begins_text : PiecePosition::continues, buffer,
        room_of(text.size()));
  }

  /// Returns true if a step depends on the number of adjacent spaces; a text must not be cut after
  /// a space then.
  bool counts_spaces() const { return counts_spaces_; }
  /// Returns the bytes of the longest symbol.
  std::size_t longest_symbol() const { return symbols_.longest(); }
  /// Returns false if a symbol or a rule may cover the offset `at` of a text, or a rule may make a
  /// space before it or remove what stands there.
  bool parts_at(std::string_view text, std::size_t at) const;

  /// Returns true if a text may be cut before this character: both sides are then normalised as in
  /// the whole text.
  static bool is_inert(std::uint32_t code_point);

 private:
  std::string_view apply_in_one_pass(
      std::string_view text, PiecePosition place, std::string& buffer, std::size_t room) const;

  std::vector<NormalStep> steps_;
  std::vector<std::shared_ptr<const Charsmap>> rules_;  // by step; null: the step has no rules
  bool counts_spaces_ = false;
  bool one_pass_ = false, prefix_once_ = false;
  std::string prefix_, mark_;  // of a tokenizer.model
  AddedMatcher symbols_;
};

}  // namespace text
