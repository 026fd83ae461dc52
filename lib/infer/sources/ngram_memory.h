#pragma once
// N-grams of other texts as a memory: what followed the longest suffix of the context that they
// have, by its counts (Liu et al. 2024, infini-gram).

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

/// See NgramOptions. The mixture of all other sources gives them the share of their bucket.
struct NgramPlan {
  std::shared_ptr<const ngrams::Index> index;  ///< null: none take part
  std::vector<double> lambda;                  ///< of each bucket
  bool any() const { return index != nullptr; }
  /// The same without what is of a text, or a shard, with one of these fingerprints.
  NgramPlan without(const shard::Fingerprints& texts) const;
};

/// Opens the folders for the model; null if there are none. Throws Error{bad_data} for those of
/// another tokenizer, and as ngrams::Index does.
std::shared_ptr<const ngrams::Index> open_ngrams(const std::vector<std::string>& folders,
                                                 const model::Loaded& loaded);

/// What is known of a context.
struct NgramContext {
  ngrams::Match match;
  ngrams::Followers followers;
  std::int64_t bucket = -1;  ///< -1: nothing follows, the index is empty
};
/// What gates see: log(1 + length of the suffix), whether one token only followed it, the logarithm
/// of how often it stands.
std::array<double, 3> gate_features_of(const NgramContext& context);

/// log p of each of R targets by the counts, (R) float64: -inf where p is 0, NaN where nothing is
/// known; and its context's bucket, (R) int64.
struct NgramScores {
  torch::Tensor log_prob, bucket;
  torch::Tensor features = {};  ///< (R, 3) float64, NaN where nothing is known: what gates see
};

/// What gave a token a share of its probability: the places of `match`, the last token of which it
/// is.
struct NgramShare {
  ngrams::Match match;
  double share = 0;
};

/// Streams, told apart by their row. Not thread safe.
class NgramMemory {
 public:
  NgramMemory(NgramPlan plan, std::int64_t rows);

  /// What comes next in a row.
  void read(std::int64_t row, std::span<const std::int64_t> tokens);
  /// Scores each target (R) of row 0 after those before it, and reads it.
  NgramScores score(const torch::Tensor& targets);
  NgramContext context(std::int64_t row) const;
  /// Whether all of what was read in row 0 stands in the index: what came before may matter.
  bool wants_more(std::size_t n_read) const;
  void clear();
  /// Row i becomes what row rows[i] was.
  void select(const torch::Tensor& rows);

  /// log p of every word by the counts of the R contexts, (R, V) float64: -inf where p is 0, NaN
  /// where nothing is known.
  torch::Tensor words(const std::vector<NgramContext>& contexts, std::int64_t words);
  /// What gives a token, by a weight, a part of its probability; none where it never followed.
  /// `log_prob` is the mixture's.
  std::optional<NgramShare> share(const NgramContext& context, std::int64_t token, double log_prob,
                                  double weight) const;

 private:
  NgramPlan plan_;
  ngrams::NextTokens next_;
  std::vector<ngrams::SuffixFollower> followers_;
};

}  // namespace infer
