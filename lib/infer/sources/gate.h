#pragma once
// Gates: shares of a mixture that depend on the token, linear in a few features and softmax over
// the sources (after He et al. 2021, Efficient nearest neighbor language models).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/base/torch.h"

namespace infer {

/// A kind of source that may have a gate, and what its gate sees beside the model's confidence.
struct GateKind {
  std::string name, flag;
  std::vector<std::string> features;
  std::int64_t weights = 1;  ///< numbers of the share without a gate
  bool searched = false;     ///< whether to look is asked before, by the confidence alone
};
/// Those of source_kinds().
const std::vector<GateKind>& gate_kinds();
/// What is known of the model's own distribution: its entropy in nats, its highest probability and
/// the logarithm of that.
inline const std::vector<std::string> kConfidence = {"entropy", "top", "log-top"};

/// What the gates of R tokens see: float64 on the CPU.
struct GateInputs {
  torch::Tensor confidence;  ///< (R, kConfidence)
  /// Of each source (R, its features); NaN: sees nothing.
  std::map<std::string, torch::Tensor> own;
  torch::Tensor bucket;  ///< (R) int64 of the source whose share depends on it
};

/// The score of one source against the rest, whose score is 0: that at which the shares are
/// `constants`, and what the features add to it.
struct GateRow {
  std::string source;
  /// The best shares without a gate: one, or one a bucket, of the whole.
  std::vector<double> constants;
  double bias = 0;
  std::vector<double> weights;  ///< of kConfidence and then of the source's features
  bool by_bucket() const { return constants.size() > 1; }
};

/// The rest is what has no gate, in the shares that it has without gates.
struct Gate {
  std::vector<GateRow> rows;      ///< in the order of gate_kinds()
  std::optional<GateRow> search;  ///< whether to look, by the model's confidence alone

  const GateRow* find(const std::string& source) const;
  /// Constant shares together, of all sources with gates but one by bucket.
  double inner() const;
};

/// (R) of each row: the score at which its share is its constant. A share of 0 counts as
/// kLeastShare; what is of no bucket has none, -inf.
torch::Tensor gate_offsets(const Gate& gate, const GateRow& row, const GateInputs& inputs);
/// (R, features) that a row's weights are of.
torch::Tensor gate_features(const GateRow& row, const GateInputs& inputs);
/// Log-shares (R, 1 + rows): of the rest, and of each row. A source that sees nothing has its
/// constant's score: who mixes gives its share to p_joint.
torch::Tensor gate_log_shares(const Gate& gate, const GateInputs& inputs);
/// (R): the share of a source by what is known before it is asked.
torch::Tensor search_shares(const Gate& gate, const torch::Tensor& confidence);

inline constexpr double kLeastShare = 1e-6;

/// A text a row: "datastore shares=0.25 bias=-1.5 entropy=0.3 ..."; that of `search` begins so.
std::vector<std::string> to_texts(const Gate& gate);
/// Throws Error{usage} for anything that to_texts() does not write.
Gate parse_gate(const std::vector<std::string>& texts);

/// Which sources have gates, and the gates, once they are fitted.
struct GatePlan {
  std::vector<std::string> sources;  ///< in the order of gate_kinds()
  Gate gate;
  double threshold = 0;  ///< of search_shares(), below which nothing is looked up

  bool any() const { return !sources.empty(); }
  bool has(const std::string& source) const;
  /// Whether one of them says before whether to look.
  bool searched() const;
  bool skips() const { return threshold > 0 && searched(); }
  /// Throws Error{usage} where gates are asked for that were fitted for other sources, or not yet.
  void expect_fitted() const;
};

}  // namespace infer
