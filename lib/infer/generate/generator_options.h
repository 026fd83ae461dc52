#pragma once
// Options of program sample.
// Changes the logits of tokens before one is drawn: penalties of tokens that a text already has,
// biases of single tokens, and a closed set of tokens.

#include "infer/windows/dynamic.h"
#include "infer/windows/window_options.h"

namespace infer {

/// LogitRules holds the changes, in the order in which they apply. The logit of a token is its
/// log-probability by the model and its memories plus the head's normaliser (the log of the sum of
/// the exponentials of the head's logits).
struct LogitRules {
  std::vector<std::int64_t> allowed = {};                    ///< ids; empty: all tokens
  std::vector<std::pair<std::int64_t, double>> biases = {};  ///< (id, added to its logit)
  /// Tokens of the prompt and of the text: positive logits are divided by it, others multiplied
  /// (Keskar et al. 2019).
  double repetition = 1;
  double frequency = 0;  ///< subtracted for each occurrence in the generated text
  double presence = 0;   ///< subtracted once from the tokens of the generated text

  bool any() const { return counts() || !biases.empty() || !allowed.empty(); }
  bool counts() const { return repetition != 1 || frequency != 0 || presence != 0; }
  /// Throws Error{bad_data}, naming the rule as a flag or as a member, for an id outside of a
  /// vocabulary of `vocabulary` tokens.
  void check(std::int64_t vocabulary, bool flags) const;
};
using LogitRulesPtr = std::shared_ptr<const LogitRules>;

/// LogitOptions are the options of these rules.
struct LogitOptions {
  double presence = 0, frequency = 0, repetition = 1;
  std::vector<std::string> biases;  ///< ID:X
  std::vector<std::int64_t> allowed;
  void fields(core::FieldList& f);
  /// Throws Error{usage} for a bias that is not ID:X.
  LogitRules rules() const;
};

/// ChangedLogits applies rules to the tokens of one text.
class ChangedLogits {
 public:
  /// `prompt`: the tokens before the text. Null rules change nothing.
  explicit ChangedLogits(LogitRulesPtr rules = {}, std::span<const std::int64_t> prompt = {});
  bool any() const { return rules_ != nullptr; }
  bool needs_normaliser() const { return any() && rules_->repetition != 1; }
  /// Adds a generated token.
  void add(std::int64_t token);
  /// Changes a row of log-probabilities, which are no longer normalised; those of tokens that are
  /// not allowed become very small and stay finite. `log_z` is the head's normaliser.
  void apply(std::span<float> log_p, float log_z) const;

 private:
  LogitRulesPtr rules_;
  std::unordered_map<std::int64_t, std::int64_t> counts_;  // 0: only in the prompt
};

constexpr std::int64_t kMostTokens = 1'000'000'000;  ///< maximum tokens of a text
constexpr double kHottest = 1e6;                     ///< maximum temperature

/// Options of sampling. Applies the temperature, then keeps the top_k best tokens, then the
/// smallest set of best tokens with total probability top_p (nucleus sampling, Holtzman et al.
/// 2020). Ties are broken by the lower token id.
struct DrawOptions {
  double temperature = -1;  ///< 0: always the best token; -1 (auto): 1
  std::int64_t top_k = 0;   ///< 0: all
  double top_p = 1;
  void fields(core::FieldList& f);
};

/// Options of copied spans: spans of the datastores that continue a text while the model agrees
/// (NEST, Li et al. 2024); see generator_draw.h.
struct SpanOptions {
  std::int64_t longest = 0;  ///< maximum tokens copied after a sampled token; 0: none
  double gamma = 0.3;        ///< minimum p of a copied token relative to the best token
  double share = 0.5;        ///< minimum fraction of the sampled token's p from the datastores
  void fields(core::FieldList& f);
};

/// Options of translation: prompts are sources.
struct TranslationOptions {
  bool source = false;
  double max_len_a = 1.2, max_len_b = 10;  ///< maximum tokens: a x + b for x tokens of the source
  std::int64_t max_source = 1024;          ///< maximum tokens of a source, including its end token
  bool truncate = false;                   ///< truncates longer sources instead of refusing them
  void fields(core::FieldList& f);
};

struct GeneratorOptions {
  DrawOptions draw;
  LogitOptions logits;
  std::int64_t samples = 1;       ///< texts for each prompt; with a beam, the best hypotheses
  std::int64_t max_tokens = 0;    ///< 0 (auto): 256; a translation's source bounds it
  std::vector<std::string> stop;  ///< a text ends before the first occurrence of one of these
  bool ignore_end = false;        ///< ignores end tokens
  std::int64_t beam = -1;         ///< number of hypotheses; 0: sampling; -1: auto
  double length_penalty = 1;      ///< hypotheses are ranked by log p / tokens^length_penalty
  std::int64_t batch = 32;        ///< rows decoded together
  std::int64_t kept = 0;          ///< prompts to keep, see Session::keep(); no flag
  std::string begin = "auto";     ///< BOS token before a prompt: auto, none, or a token's text
  bool special = false;           ///< parses the texts of special tokens in prompts
  std::int64_t window = 0;        ///< in tokens; 0: the training segment
  std::string weights = "auto";
  std::string keys = "float32";  ///< type of the stored keys and values
  bool cite = false;             ///< reports the stored contexts that contributed to each token
  std::int64_t cite_k = 3;       ///< maximum contexts for each token
  SpanOptions spans;
  TranslationOptions translation;
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  DynamicOptions dynamic;  ///< no flag of fields()
  std::uint64_t seed = 1;  ///< set by --seed
  void fields(core::FieldList& f);
  void key_field(core::FieldList& f);

  bool searches() const { return beam > 0; }
  /// Resolves beam: a translation uses a beam of 4 unless an option selects how tokens are drawn.
  /// Throws Error{usage} for exclusive options.
  void settle();
  /// Throws Error{usage} that names a flag with an invalid value.
  void check() const;
};

}  // namespace infer
