#pragma once
// Gates: interpolation weights that depend on the token, linear in a few features, with a softmax
// over the sources (after He et al. 2021, Efficient nearest neighbor language models).

#include "infer/windows/head_rows.h"

namespace infer {

class SourceKind;

/// Returns those of source_kinds() that may have a gate.
const std::vector<const SourceKind*>& gate_kinds();

/// Features of R tokens for the gates: float64 on the CPU.
struct GateInputs {
  torch::Tensor confidence;  ///< (R, kConfidence)
  /// (R, number of features) for each source; NaN if the source has no entries.
  std::map<std::string, torch::Tensor> by_source;
  /// (R) int64 for each source whose weight depends on a bucket; -1: no entries.
  std::map<std::string, torch::Tensor> buckets = {};
};

/// Linear score of one source relative to the rest, whose score is 0. The score is the logit of the
/// constant weights plus the weighted features.
struct GateRow {
  std::string source;
  /// Best constant weights without a gate: one, or one for each bucket as a fraction of the whole.
  std::vector<double> constants;
  double bias = 0;
  std::vector<double> weights;  ///< of kConfidence, then of the source's features
  bool by_bucket() const { return constants.size() > 1; }
};

/// Fitted gates. Sources without a gate form the rest and keep their relative weights.
struct Gate {
  std::vector<GateRow> rows;      ///< in the order of gate_kinds()
  std::optional<GateRow> search;  ///< decides from the model's confidence alone whether to search

  const GateRow* find(const std::string& source) const;
  /// Returns the sum of the constant weights of all gated sources, except a source with buckets.
  double inner() const;
};

/// Returns (R), the score at which the row's weight equals its constant. A constant of 0 counts as
/// kLeastShare; tokens without a bucket get -inf.
torch::Tensor gate_offsets(const Gate& gate, const GateRow& row, const GateInputs& inputs);
/// Returns (R, number of features), the features that the row's weights multiply.
torch::Tensor gate_features(const GateRow& row, const GateInputs& inputs);
/// Returns log-weights (R, 1 + rows): of the rest, then of each row. A source without entries gets
/// the score of its constant; the caller adds its weight to p_joint.
torch::Tensor gate_log_shares(const Gate& gate, const GateInputs& inputs);
/// Returns (R), the weight of a source as estimated before a search.
torch::Tensor search_shares(const Gate& gate, const torch::Tensor& confidence);

inline constexpr double kLeastShare = 1e-6;

/// Returns one text for each row, such as "datastore shares=0.25 bias=-1.5 entropy=0.3 ..."; the
/// text of `search` begins with "search".
std::vector<std::string> to_texts(const Gate& gate);
/// Parses texts written by to_texts(). Throws Error{usage} for any other text.
Gate parse_gate(const std::vector<std::string>& texts);

/// Names the gated sources, and holds the gates after fitting.
struct GatePlan {
  std::vector<std::string> sources;  ///< in the order of gate_kinds()
  Gate gate;
  double threshold = 0;  ///< value of search_shares() below which the search is skipped

  bool any() const { return !sources.empty(); }
  bool has(const std::string& source) const { return std::ranges::count(sources, source) > 0; }
  /// Returns whether a gated source supports skipping the search.
  bool searched() const;
  bool skips() const { return threshold > 0 && searched(); }
  /// Throws Error{usage} if the plan asks for gates that are not fitted or are fitted for other
  /// sources.
  void expect_fitted() const;
};

}  // namespace infer
