#pragma once
// A text whose tokens say what they cost and where their probability came from.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace page {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A stored context after which the token stood.
struct StoredContext {
  std::string store;
  std::int64_t document = 0, row = 0;
  double share = 0;         ///< of the token's probability
  std::string text;         ///< what stood before the token there
  std::string source = {};  ///< FILE:LINE; empty: unknown
};

/// Texts are bytes of anybody's: what is no UTF-8 is written as U+FFFD.
struct AnnotatedToken {
  std::string text;  ///< what it prints; a character that several tokens make stands with the last
  bool begins_document = false;
  double nats = kUnknown;    ///< -log p; NaN: not scored
  double beside = kUnknown;  ///< the same by what it is compared with; NaN: not known
  std::int64_t rank = -1;    ///< words that were more probable; -1: not known
  std::vector<std::pair<std::string, double>> likely = {};  ///< the most probable words
  std::vector<double> shares = {};  ///< of its probability, by source; empty: not known
  std::vector<StoredContext> contexts = {};

  bool scored() const { return nats == nats; }
  bool compared() const { return scored() && beside == beside; }
};

struct AnnotatedText {
  std::string title;
  std::string model;                 ///< and its memories, in words; may be empty
  std::string beside;                ///< what it is compared with; empty: nothing
  std::vector<std::string> sources;  ///< what shares are of
  std::vector<AnnotatedToken> tokens;
};

/// Over the tokens that are scored; NaN where there are none.
struct Means {
  std::uint64_t tokens = 0, compared = 0;
  double nats = kUnknown;
  double beside = kUnknown, nats_compared = kUnknown;  ///< over those that are compared
};
Means means_of(const AnnotatedText& text);

/// The source that gave a token most; -1 where it is not known.
std::int64_t main_source(const AnnotatedToken& token);

}  // namespace page
