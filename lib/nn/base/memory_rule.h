#pragma once
// Memories: entries (key, label) that add probability mass to tokens, and the visibility rules.

#include "nn/base/batch.h"
#include "nn/kernels/visibility_rule.h"

namespace nn {

/// M entries: the key of a context and the token that followed it.
struct Entries {
  torch::Tensor keys;    ///< (M, d_key)
  torch::Tensor labels;  ///< (M) int64, on the keys' device
  TokenPositions place;  ///< (M), CPU

  std::int64_t size() const { return labels.defined() ? labels.numel() : 0; }
  /// Returns the pairs (key, target) of a batch's tokens, row by row: keys `g` (B, T, d_key).
  static Entries of(const torch::Tensor& g, const Batch& batch);
  /// Concatenates entries, with the type of the first keys. Skips empty ones.
  static Entries concatenate(const std::vector<Entries>& parts);
};

enum class Metric { ip, l2 };

/// Visibility rule (VisibilityRule) and score of a query-key pair (TRIME, eq. 2), without the sqrt
/// unless `scale_by_width`:
///   ip     q.k / (sqrt(d_key) temperature)
///   l2     -|q - k|^2 / (sqrt(d_key) temperature)
struct MemoryRule : VisibilityRule {
  /// 0: all visible entries; else only a query's k best ones.
  std::int64_t top_k = 0;
  double temperature = 1;
  Metric metric = Metric::ip;
  bool scale_by_width = true;
  /// Whether gradients flow into the keys (into queries they always do).
  bool gradient = true;

  /// Parses "none" or a comma-separated list of local, long, ext. Throws Error{usage}.
  static MemoryRule parse(const std::string& names);
  std::string name() const;
};

/// Log-mass of a query without visible entries: finite, so that masks never produce NaN.
inline constexpr double kUnseen = -1e30;

/// Returns the spans [begin, end) of entries that are visible to at least one query: coalesced,
/// sorted, disjoint. Fast: works on summaries of blocks of `granularity` entries.
std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const TokenPositions& queries,
    const TokenPositions& entries, const MemoryRule& rule, std::int64_t granularity = 128);

/// Returns the visibility mask (R, end - begin) bool, on the CPU.
torch::Tensor visibility(
    const TokenPositions& queries, const TokenPositions& entries, const MemoryRule& rule);

}  // namespace nn
