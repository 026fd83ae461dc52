#pragma once
// The masses that memories give to a block of queries, forward and backward.

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "nn/memory/visibility.h"

namespace nn {

/// Masses of one block of queries, with what its backward pass needs. No autograd graph is made.
/// float32 without top-k goes through SeenScores, or through its kernels on a device; everything
/// else through whole masks.
class MemoryBlock {
 public:
  /// queries (R, d_key), their places and targets (R) int64; `entries` must outlive the block. What
  /// a device's kernels are to be told of both is made anew where `sighting` is null.
  MemoryBlock(const torch::Tensor& queries, const Place& place, const torch::Tensor& targets,
              const Entries& entries, const MemoryRule& rule, const Sighting* sighting = nullptr);

  /// Whether blocks of such queries ask a Sighting.
  static bool by_kernels(const torch::Tensor& queries, const MemoryRule& rule);

  torch::Tensor all;       ///< (R): log-sum-exp over the visible entries; kUnseen if none
  torch::Tensor positive;  ///< (R): the same over those whose label is the target; kUnseen if none

  /// dL/d all, dL/d positive, each (R) -> dL/d queries (R, d_key); adds to d_keys (M, d_key) if
  /// rule.gradient. May be called once; the block is spent.
  torch::Tensor backward(const torch::Tensor& d_all, const torch::Tensor& d_positive,
                         torch::Tensor& d_keys);

 private:
  // The scores of some queries against a span of entries.
  struct Span {
    std::int64_t begin, end;   // of entries
    Place place;               // of entries, contiguous; not with kernels
    torch::Tensor exp_scores;  // scores, then exp(score - the row's maximum), 0 where unseen
    torch::Tensor match;       // bool: the label is the target; with masks
  };
  // Queries [begin, end): few, so that a causal block does not hold twice what is visible.
  struct Part {
    std::int64_t begin, end;
    Place place;  // of the queries, contiguous; not with kernels
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
  // What a kernel is told of a part and a span, whose scores are exp_scores.
  SeenRows rows_of(const Part& part, const Span& span) const;

  const Entries& entries_;
  MemoryRule rule_;
  By by_;
  double scale_ = 1;
  torch::Tensor queries_, sum_all_, sum_positive_, max_;
  torch::Tensor labels_, targets_;    // int32 with loops, int64 with kernels
  std::optional<Sighting> sighting_;  // with kernels
  std::vector<Part> parts_;
};

/// Masses of R queries at n temperatures.
struct TemperedMasses {
  torch::Tensor all, positive;  ///< (n, R), each row as MemoryBlock's
};
/// What MemoryBlock gives at each of `temperatures`; rule.temperature does not count. Where it goes
/// through SeenScores and scores are q.k, the products are made once for all (n > 1).
TemperedMasses tempered_masses(const torch::Tensor& queries, const Place& place,
                               const torch::Tensor& targets, const Entries& entries,
                               const MemoryRule& rule, const std::vector<double>& temperatures);

/// Log-mass of every word: (R, V), kUnseen where no visible entry has the label. For sampling and
/// beams.
torch::Tensor memory_log_masses(const torch::Tensor& queries, const Place& place,
                                const Entries& entries, const MemoryRule& rule,
                                std::int64_t vocabulary);

}  // namespace nn
