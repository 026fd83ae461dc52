#pragma once
// Changes the logits of tokens before one is drawn: penalties of tokens that a text already has,
// biases of single tokens, and a closed set of tokens.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/options.h"

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

  bool any() const;
  bool counts() const { return repetition != 1 || frequency != 0 || presence != 0; }
  /// Throws Error{bad_data}, naming the rule as a flag or as a member, for an id outside of a
  /// vocabulary of `words` tokens.
  void check(std::int64_t words, bool flags) const;
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

}  // namespace infer
