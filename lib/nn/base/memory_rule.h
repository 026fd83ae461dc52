#pragma once
// Memories: entries (key, label) that give mass to words, and the rules of who sees whom.

#include <cstdint>
#include <string>
#include <vector>

#include "nn/base/batch.h"
#include "nn/base/torch.h"
#include "nn/kernels/who_sees.h"

namespace nn {

/// M entries. Each is a context's g and the token that followed it.
struct Entries {
  torch::Tensor keys;    ///< (M, d_key)
  torch::Tensor labels;  ///< (M) int64, on the keys' device
  Place place;           ///< (M), CPU

  std::int64_t size() const { return labels.defined() ? labels.numel() : 0; }
  /// The pairs (g, target) of a batch's tokens, row after row: g (B, T, d_key).
  static Entries of(const torch::Tensor& g, const Batch& batch);
  /// One after the other, in the type of the first one's keys. Those of size 0 are left out.
  static Entries concatenate(const std::vector<Entries>& parts);
};

enum class Metric { ip, l2 };

/// Who sees whom (SightRule), and how a pair scores (TRIME, eq. 2), without the sqrt where not
/// `scale_by_width`:
///   ip     q.k / (sqrt(d_key) temperature)
///   l2     -|q - k|^2 / (sqrt(d_key) temperature)
struct MemoryRule : SightRule {
  /// 0: all; else only the k best visible entries of a query.
  std::int64_t top_k = 0;
  double temperature = 1;
  Metric metric = Metric::ip;
  bool scale_by_width = true;
  /// Into the keys (queries always).
  bool gradient = true;

  /// "none", or a comma-separated union of local, long, ext. Throws Error{usage}.
  static MemoryRule parse(const std::string& names);
  std::string name() const;
};

/// Log-mass below which a query has seen nothing: finite, so that no mask makes NaN.
inline constexpr double kUnseen = -1e30;

/// Spans [begin, end) of entries that at least one query may see, coalesced; sorted, disjoint.
/// Cheap: works on summaries of blocks of `granularity` entries.
std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const Place& queries,
                                                                 const Place& entries,
                                                                 const MemoryRule& rule,
                                                                 std::int64_t granularity = 128);

/// (R, end - begin) bool, on the CPU: who sees whom, for every pair.
torch::Tensor visibility(const Place& queries, const Place& entries, const MemoryRule& rule);

}  // namespace nn
