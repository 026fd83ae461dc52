#pragma once
// How a text is continued: `sample`'s options.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/windows/layer_reach.h"
#include "infer/windows/retrieve_options.h"

namespace infer {

constexpr std::int64_t kMostTokens = 1'000'000'000;  ///< of a text
constexpr double kHottest = 1e6;                     ///< temperature

/// From which words the next one is drawn: temperature first, then the top_k best, then the fewest
/// best that have the mass top_p among them (Holtzman et al. 2020). Of equals the lower id is the
/// better one.
struct DrawOptions {
  double temperature = 1;  ///< 0: the best word, always
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1;
  void fields(core::FieldList& f);
};

/// Stretches of the stores that a text goes on with while the model agrees (Li et al. 2024, NEST);
/// see spans.h.
struct SpanOptions {
  std::int64_t longest = 0;  ///< tokens taken after a word that is drawn; 0: none
  double gamma = 0.3;        ///< least p of a token taken, over that of the best word
  double share = 0.5;        ///< of the drawn word's p, that the stores must have given
  void fields(core::FieldList& f);
};

/// Prompts as sources that a model translates.
struct TranslationOptions {
  bool source = false;
  double max_len_a = 1.2, max_len_b = 10;  ///< most tokens: a x + b, x tokens of the source
  std::int64_t max_source = 1024;          ///< most tokens of a source, its end among them
  bool truncate = false;                   ///< a longer one is cut, not refused
  void fields(core::FieldList& f);
};

struct GeneratorOptions {
  DrawOptions draw;
  std::int64_t samples = 1;  ///< texts a prompt; of a beam, its best
  std::int64_t max_tokens = 256;
  std::vector<std::string> stop;  ///< a text ends before the first of these
  bool ignore_end = false;        ///< no token ends a text
  std::int64_t beam = 0;          ///< hypotheses; 0: draw
  double length_penalty = 1;      ///< hypotheses compare by log p / tokens^length_penalty
  std::int64_t batch = 32;        ///< rows decoded together
  std::string begin = "auto";     ///< what stands before a prompt: auto, none, or a token's text
  bool special = false;           ///< texts of special tokens in a prompt are these tokens
  std::int64_t window = 0;        ///< tokens the model sees at once; 0: what it was trained with
  std::string weights = "float32";
  bool cite = false;           ///< say which stored contexts gave each token its probability
  std::int64_t cite_most = 3;  ///< contexts of a token
  SpanOptions spans;
  TranslationOptions translation;
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  std::uint64_t seed = 1;  ///< no flag of its own: --seed
  void fields(core::FieldList& f);

  bool searches() const { return beam > 0; }
  /// What the names of the options that were `given` decide: a translation searches with a beam of
  /// 4 unless they say how words are chosen. Throws Error{usage} for those that exclude each other.
  void settle(const std::set<std::string>& given);
  /// Throws Error{usage} naming the flag whose value makes no sense.
  void check() const;
};

}  // namespace infer
