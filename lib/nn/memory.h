#pragma once
// Memories: entries (key, label) that give mass to words, and the rules of who sees whom.

#include <cstdint>
#include <string>
#include <vector>

#include "nn/batch.h"
#include "nn/torch.h"

namespace nn {

/// M entries. Each is a context's g and the token that followed it.
struct Entries {
  torch::Tensor keys;    ///< (M, d_key)
  torch::Tensor labels;  ///< (M) int64, on the keys' device
  Place place;           ///< (M), CPU

  std::int64_t size() const { return labels.defined() ? labels.numel() : 0; }
};

enum class Metric { ip, l2 };

/// Who sees whom, and how a pair scores. A sum of rules is a union: an entry counts once whatever
/// rules show it.
///   local  entries of the query's own run and segment, at earlier positions
///   long   entries of the query's run, at earlier positions (own segment included), at most
///   `reach` tokens back ext    entries of other runs
/// Score: q.k / (sqrt(d_key) temperature) for ip, -|q - k|^2 / (sqrt(d_key) temperature) for l2
/// (TRIME, eq. 2); without `scale_by_width` the sqrt is left out. Padding sees nothing and is seen
/// by nobody.
struct MemoryRule {
  bool local = false, far = false, ext = false;  ///< far: "long", which C++ keeps for itself
  bool drop_own_segment =
      false;               ///< hide the query's own segment (TRIME's ext, a coin a micro-batch)
  std::int64_t reach = 0;  ///< 0: no limit
  std::int64_t top_k = 0;  ///< 0: all; else only the k best visible entries of a query
  double temperature = 1;
  Metric metric = Metric::ip;
  bool scale_by_width = true;
  bool gradient = true;  ///< into the keys (queries always)

  bool any() const { return local || far || ext; }
  /// The truth table, for one pair.
  bool sees(std::int64_t query_run, std::int64_t query_segment, std::int64_t query_position,
            std::int64_t entry_run, std::int64_t entry_segment, std::int64_t entry_position) const;
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

/// (R, end - begin) bool, on the CPU: MemoryRule::sees for every pair.
torch::Tensor visibility(const Place& queries, const Place& entries, const MemoryRule& rule);

}  // namespace nn
