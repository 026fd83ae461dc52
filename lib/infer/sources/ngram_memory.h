#pragma once
// N-grams of other texts as a memory: the counts of tokens that followed the longest matching
// suffix of the context (Liu et al. 2024, infini-gram).

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/sources/ngram_options.h"
#include "model/folder.h"
#include "ngrams/next_tokens.h"
#include "ngrams/suffix_follower.h"
#include "nn/base/torch.h"

namespace infer {

/// Resolved NgramOptions. The mixture interpolates n-grams with all other sources by the weight of
/// the context's bucket.
struct NgramPlan {
  std::shared_ptr<const ngrams::Index> index;  ///< null: no n-grams
  std::vector<double> lambda;                  ///< weight of each bucket
  bool any() const { return index != nullptr; }
  /// Returns the plan without texts or shards that have one of these fingerprints.
  NgramPlan without(const shard::Fingerprints& texts) const;
};

/// Opens the folders for the model; returns null if there are none. Throws Error{bad_data} for a
/// different tokenizer, and the errors of ngrams::Index.
std::shared_ptr<const ngrams::Index> open_ngrams(const std::vector<std::string>& folders,
                                                 const model::Loaded& loaded);

/// Match of a context in the index.
struct NgramContext {
  ngrams::Match match;
  ngrams::Followers followers;
  std::int64_t bucket = -1;  ///< -1: no continuation (the index is empty)
};
/// Returns the features for gates: log(1 + suffix length), whether only one token followed the
/// suffix, and the log of its count.
std::array<double, 3> gate_features_of(const NgramContext& context);

/// Scores of R targets: log p by the counts, (R) float64, -inf if p is 0 and NaN if there is no
/// continuation; and the bucket of the context, (R) int64.
struct NgramScores {
  torch::Tensor log_prob, bucket;
  torch::Tensor features = {};  ///< (R, 3) float64, features for gates; NaN if there is no
                                ///< continuation
};

/// Contribution of n-grams to a token's probability: the positions of `match`, which includes the
/// token as its last one.
struct NgramShare {
  ngrams::Match match;
  double share = 0;
};

/// N-gram matching for several streams, one for each row. Not thread safe.
class NgramMemory {
 public:
  NgramMemory(NgramPlan plan, std::int64_t rows);

  /// Reads the next tokens of a row.
  void read(std::int64_t row, std::span<const std::int64_t> tokens);
  /// Scores each target (R) of row 0 given those before it, and reads it.
  NgramScores score(const torch::Tensor& targets);
  NgramContext context(std::int64_t row) const;
  /// Returns whether the index contains all `n_read` tokens of row 0, so that earlier tokens may
  /// matter.
  bool wants_more(std::size_t n_read) const;
  void clear();
  /// Replaces row i by the former row rows[i].
  void select(const torch::Tensor& rows);

  /// Returns log p of every token by the counts of the R contexts, (R, V) float64; -inf if p is 0,
  /// NaN if there is no continuation.
  torch::Tensor words(const std::vector<NgramContext>& contexts, std::int64_t words);
  /// Returns the contribution to a token's probability under `weight`; nullopt if the token never
  /// followed. `log_prob` is the mixture's.
  std::optional<NgramShare> share(const NgramContext& context, std::int64_t token, double log_prob,
                                  double weight) const;

 private:
  NgramPlan plan_;
  ngrams::NextTokens next_;
  std::vector<ngrams::SuffixFollower> followers_;
};

}  // namespace infer
