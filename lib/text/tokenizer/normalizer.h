#pragma once
// What is done to a text before it is split: Unicode's normal forms, lower case, a prefix, one
// character written as another.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/charsmap.h"

namespace text {

struct NormalStep {
  enum class What : std::uint8_t {
    nfc,
    nfkc,
    lowercase,
    prepend,
    replace,
    trim,      ///< spaces at both ends go
    squeeze,   ///< several spaces are one
    charsmap,  ///< SentencePiece's compiled rules
  };
  What what;
  std::string from;  ///< replace: one character; charsmap: the rules (charsmap.h)
  std::string to;    ///< replace, prepend
  bool operator==(const NormalStep&) const = default;
};

/// The patterns by which a tokenizer.json says trim and squeeze.
inline constexpr std::string_view kTrimmed = R"(\A +| +\z)", kSqueezed = " {2,}";

/// Const calls are thread safe. Bytes that are not UTF-8 stay as they are.
class Normalizer {
 public:
  Normalizer() = default;
  /// Throws Error{bad_data} for rules that are damaged.
  explicit Normalizer(std::vector<NormalStep> steps);

  bool empty() const { return steps_.empty(); }
  const std::vector<NormalStep>& steps() const { return steps_; }

  /// What the steps may make of so many bytes. A character is 11 times as long in NFKC at most.
  static constexpr std::size_t kGrowth = 64, kGrowthAtFirst = 4096;
  static constexpr std::size_t room_of(std::size_t bytes) {
    return kGrowth * bytes + kGrowthAtFirst;
  }

  /// `text` itself where nothing changes, else what it becomes, in `buffer` (not the memory of
  /// `text`). `begins`: prefixes are put before it. Throws Error{bad_data} where a step would make
  /// more than `room` bytes.
  std::string_view apply(std::string_view text, bool begins, std::string& buffer,
                         std::size_t room) const;
  std::string_view apply(std::string_view text, bool begins, std::string& buffer) const {
    return apply(text, begins, buffer, room_of(text.size()));
  }

  /// Whether steps look at how many spaces stand together: no text may be cut behind one then.
  bool counts_spaces() const { return counts_spaces_; }

  /// True if a text may be cut before this character: both sides are normalised as in the whole.
  static bool is_inert(std::uint32_t code_point);

 private:
  std::vector<NormalStep> steps_;
  std::vector<std::shared_ptr<const Charsmap>> rules_;  // of each step; null: it has none
  bool counts_spaces_ = false;
};

}  // namespace text
