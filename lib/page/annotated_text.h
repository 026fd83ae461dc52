#pragma once
// A text whose tokens record their loss and the sources of their probability.
// Reads the output of `sample --cite --json` as an annotated text.

#include "core/base.h"

namespace page {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A StoredContext is a stored context that the token followed.
struct StoredContext {
  std::string store;
  std::int64_t document = 0, row = 0;
  double share = 0;         ///< fraction of the token's probability
  std::string text;         ///< the text before the token there
  std::string source = {};  ///< FILE:LINE; empty: unknown
};

/// An AnnotatedToken is one token and its figures. Texts are arbitrary bytes; output replaces what
/// is not UTF-8 by U+FFFD.
struct AnnotatedToken {
  /// The text of the token. A character of several tokens belongs to the last of them.
  std::string text;
  bool begins_document = false;
  double nats = kUnknown;    ///< -log p; NaN: not scored
  double beside = kUnknown;  ///< the loss in nats under the model of comparison; NaN: not known
  std::int64_t rank = -1;    ///< number of tokens with a higher probability; -1: not known
  std::vector<std::pair<std::string, double>> likely = {};  ///< the most probable tokens
  std::vector<double> shares = {};  ///< fractions of its probability, by source; empty: not known
  std::vector<StoredContext> contexts = {};

  bool scored() const { return nats == nats; }
  bool compared() const { return scored() && beside == beside; }
};

/// An AnnotatedText is the input of a page.
struct AnnotatedText {
  std::string title;
  std::string model;                 ///< describes the model and its memories; may be empty
  std::string beside;                ///< describes the model of comparison; empty: none
  std::vector<std::string> sources;  ///< the names of the sources in AnnotatedToken::shares
  std::vector<AnnotatedToken> tokens;
};

/// Means are averages over the scored tokens; NaN if there are none.
struct Means {
  std::uint64_t tokens = 0, compared = 0;
  double nats = kUnknown;
  /// Averages over the compared tokens.
  double beside = kUnknown, nats_compared = kUnknown;
};
/// Returns the means of a text.
Means means_of(const AnnotatedText& text);

/// Returns the source with the largest fraction of a token's probability; -1 if it is not known.
std::int64_t main_source(const AnnotatedToken& token);

/// Adds one line of that output: the prompt as one token without a score, then the tokens of the
/// continuation with their contexts. The first line sets the text's sources: the model and the
/// cited memories. `origin` names the line in messages. Throws Error{bad_data} for any other line
/// and for a line without citations.
void add_sample(AnnotatedText& text, std::string_view line, const std::string& origin);

}  // namespace page
