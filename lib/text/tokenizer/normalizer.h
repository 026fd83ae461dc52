#pragma once
// Normalises a text before it is split: Unicode normal forms, lower case, a prefix, replacement of
// a character.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/charsmap.h"

namespace text {

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
  std::string from;  ///< replace: one character; charsmap: the rules (charsmap.h)
  std::string to;    ///< replace, prepend
  bool operator==(const NormalStep&) const = default;
};

/// The patterns that mean trim and squeeze in a tokenizer.json.
inline constexpr std::string_view kTrimmed = R"(\A +| +\z)", kSqueezed = " {2,}";

/// A Normalizer applies a sequence of steps. Bytes that are not UTF-8 stay unchanged. Const calls
/// are thread safe.
class Normalizer {
 public:
  Normalizer() = default;
  /// Takes the steps. Throws Error{bad_data} for corrupt rules.
  explicit Normalizer(std::vector<NormalStep> steps);

  bool empty() const { return steps_.empty(); }
  const std::vector<NormalStep>& steps() const { return steps_; }

  /// The default limit of the output for a number of input bytes. NFKC makes a character at most 11
  /// times as long.
  static constexpr std::size_t kGrowth = 64, kGrowthAtFirst = 4096;
  static constexpr std::size_t room_of(std::size_t bytes) {
    return kGrowth * bytes + kGrowthAtFirst;
  }

  /// Returns the normalised text: `text` itself if nothing changes, else the contents of `buffer`,
  /// which must not hold `text`. `begins` allows prefixes. Throws Error{bad_data} if a step would
  /// make more than `room` bytes.
  std::string_view apply(std::string_view text, bool begins, std::string& buffer,
                         std::size_t room) const;
  std::string_view apply(std::string_view text, bool begins, std::string& buffer) const {
    return apply(text, begins, buffer, room_of(text.size()));
  }

  /// Returns true if a step depends on the number of adjacent spaces; a text must not be cut after
  /// a space then.
  bool counts_spaces() const { return counts_spaces_; }

  /// Returns true if a text may be cut before this character: both sides are then normalised as in
  /// the whole text.
  static bool is_inert(std::uint32_t code_point);

 private:
  std::vector<NormalStep> steps_;
  std::vector<std::shared_ptr<const Charsmap>> rules_;  // by step; null: the step has no rules
  bool counts_spaces_ = false;
};

}  // namespace text
