#pragma once
// What is done to a text before it is split: Unicode's normal forms, lower case, a prefix, one
// character written as another.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace text {

struct NormalStep {
  enum class What : std::uint8_t { nfc, nfkc, lowercase, prepend, replace };
  What what;
  std::string from;  ///< replace: one character
  std::string to;    ///< replace, prepend
  bool operator==(const NormalStep&) const = default;
};

/// Const calls are thread safe. Bytes that are not UTF-8 stay as they are.
class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalStep> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  const std::vector<NormalStep>& steps() const { return steps_; }

  /// `text` itself where nothing changes, else what it becomes, in `buffer` (not the memory of
  /// `text`). `begins`: prefixes are put before it.
  std::string_view apply(std::string_view text, bool begins, std::string& buffer) const;

  /// True if a text may be cut before this character: both sides are normalised as in the whole.
  static bool is_inert(std::uint32_t code_point);

 private:
  std::vector<NormalStep> steps_;
};

}  // namespace text
