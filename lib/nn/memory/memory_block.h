#pragma once
// Log-masses that memories add to a block of queries, with the backward pass.
// Prepares places and a rule for the kernels that compute visibility.

#include "nn/base/memory_rule.h"
#include "nn/kernels/memory_kernels.h"

namespace nn {

/// Returns the place with contiguous tensors.
TokenPositions contiguous(const TokenPositions& place);

/// Returns the scores' visibility; both places are contiguous and must outlive it.
SeenScores seen_scores(
    const TokenPositions& queries, const TokenPositions& entries, const MemoryRule& rule);

/// Positions of queries and entries on the device of the kernels, uploaded in one copy.
struct PositionPair {
  TokenPositions queries, entries;  ///< (R), (M), contiguous, on the device
  torch::Tensor tiles;              ///< (seen_tiles(M), 7) int64: a PositionRange for each tile

  /// Requires cuda_kernels for float32 tensors of the device.
  PositionPair(const TokenPositions& queries, const TokenPositions& entries, torch::Device device);
  PositionPair(TokenPositions queries_, TokenPositions entries_, torch::Tensor tiles_)
      : queries(std::move(queries_)), entries(std::move(entries_)), tiles(std::move(tiles_)) {}
  /// Returns the view of queries [begin, end).
  PositionPair of(std::int64_t begin, std::int64_t end) const {
    return {queries.slice(begin, end), entries, tiles};
  }
  /// Returns the kernel arguments for entries [begin, end), with `begin` a multiple of kSeenTile.
  /// Leaves scores and matches unset.
  SeenRows rows(std::int64_t begin, std::int64_t end, const VisibilityRule& rule) const;
};

/// Log-masses of a block of queries and the data for their backward pass. Builds no autograd graph.
/// float32 without top-k uses SeenScores, or its kernels on a device; all other cases use full
/// masks.
class MemoryBlock {
 public:
  /// queries (R, d_key), their places and targets (R) int64; `entries` must outlive the block. A
  /// null `position_pair` is created here for a device's kernels.
  MemoryBlock(const torch::Tensor& queries, const TokenPositions& place,
      const torch::Tensor& targets, const Entries& entries, const MemoryRule& rule,
      const PositionPair* position_pair = nullptr);

  /// Returns whether blocks of such queries use a PositionPair.
  static bool by_kernels(const torch::Tensor& queries, const MemoryRule& rule);

  torch::Tensor all;       ///< (R): log-sum-exp over the visible entries; kUnseen if none
  torch::Tensor positive;  ///< (R): log-sum-exp over the visible entries labelled with the target;
                           ///< kUnseen if none

  /// Returns dL/d queries (R, d_key) from dL/d all and dL/d positive, each (R); adds to d_keys (M,
  /// d_key) if rule.gradient. Call it at most once for each block.
  torch::Tensor backward(
      const torch::Tensor& d_all, const torch::Tensor& d_positive, torch::Tensor& d_keys);

 private:
  // Scores of some queries against a span of entries.
  struct Span {
    std::int64_t begin, end;   // range of entries
    TokenPositions place;      // of the entries, contiguous; unused with kernels
    torch::Tensor exp_scores;  // scores, then exp(score - the row's maximum), 0 if not visible
    torch::Tensor match;       // bool: the label equals the target; with masks
  };
  // Queries [begin, end): few, so that a causal block stores at most twice the visible scores.
  struct Part {
    std::int64_t begin, end;
    TokenPositions place;  // of the queries, contiguous; unused with kernels
    std::vector<Span> spans;
  };
  enum class By { loops, kernels, masks };
  static By chosen(const torch::Tensor& queries, const MemoryRule& rule);
  torch::Tensor scores(const Part& part, const Span& span) const;
  void sum_masked(Part& part, const torch::Tensor& targets);
  void sum_seen(Part& part);
  void sum_there(Part& part);
  void backward_masked(const Part& part, Span& span, const torch::Tensor& every,
      const torch::Tensor& matching) const;
  void backward_seen(const Part& part, Span& span, const torch::Tensor& every,
      const torch::Tensor& matching) const;
  void backward_there(const Part& part, Span& span, const torch::Tensor& every,
      const torch::Tensor& matching) const;
  // Returns the kernel arguments for a part and a span with scores exp_scores.
  SeenRows rows_of(const Part& part, const Span& span) const;

  const Entries& entries_;
  MemoryRule rule_;
  By by_;
  double scale_ = 1;
  torch::Tensor queries_, sum_all_, sum_positive_, max_;
  torch::Tensor labels_, targets_;             // int32 with loops, int64 with kernels
  std::optional<PositionPair> position_pair_;  // with kernels
  std::vector<Part> parts_;
};

/// Log-masses of R queries, (..., R), without a part's bias: over all entries, and over those
/// labelled with the query's target; kUnseen if none.
struct Masses {
  torch::Tensor all, positive;
  /// Adds further entries to the sums, which are undefined without entries.
  void add(const Masses& more) {
    all = all.defined() ? torch::logaddexp(all, more.all) : more.all;
    positive = positive.defined() ? torch::logaddexp(positive, more.positive) : more.positive;
  }
};
/// Returns the log-masses of MemoryBlock at each of n temperatures, (n, R); ignores
/// rule.temperature. With
/// SeenScores and scores q.k, computes the products once for all temperatures (n > 1).
Masses tempered_masses(const torch::Tensor& queries, const TokenPositions& place,
    const torch::Tensor& targets, const Entries& entries, const MemoryRule& rule,
    const std::vector<double>& temperatures);

/// Returns the log-mass of every token, (R, V), kUnseen if no visible entry has the label; for
/// sampling and beam search.
torch::Tensor memory_log_masses(const torch::Tensor& queries, const TokenPositions& place,
    const Entries& entries, const MemoryRule& rule, std::int64_t vocabulary);

}  // namespace nn
