#pragma once
// Sums a step's gradients and losses in an order that does not depend on the number of processes.

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/base/torch.h"
#include "ranks/group.h"
#include "train/gradient_buckets.h"
#include "train/optimiser.h"
#include "train/train_options.h"
#include "train/update.h"

namespace train {

/// Returns the order of summation for the option.
inline ranks::Sum sum_of(const Recipe& recipe) {
  return recipe.reduce == "fast" ? ranks::Sum::fast : ranks::Sum::tree;
}

/// Returns the largest odd divisor of n > 0.
inline std::int64_t odd_part(std::int64_t n) {
  while (n % 2 == 0) n /= 2;
  return n;
}

/// Replaces losses (n), float64, and a count by their sums over processes. The host does not wait
/// for a device whose ranks are connected. Collective.
void sum_figures(torch::Tensor& nats, std::int64_t& scored, ranks::Group& group, ranks::Sum how);

/// A step's micro-batches are the leaves of a tree. Their number is 2^k m, m odd: m neighbours are
/// added sequentially, as autograd does, and these blocks by pairs, pairs of pairs, and so on. With
/// N processes, N a power of two and at most 2^k, each process sums whole branches, and the network
/// adds the last levels. For other N, and for Sum::fast, each process sums its own leaves and
/// the group adds the rest in its order.
class GradientSum {
 public:
  /// `weights` have no gradient yet. `own`: number of leaves of each process. `buckets` of the same
  /// weights sum over processes; null: through host memory.
  GradientSum(const NamedWeights& weights, std::int64_t own, ranks::Group& group, ranks::Sum how,
              GradientBuckets* buckets = nullptr);

  /// Returns the maximum number of gradients in memory for `own` leaves.
  static std::int64_t held(std::int64_t own, ranks::Sum how);

  /// Call before a leaf's backward pass, which adds to the weights' gradients: if it completes this
  /// process's sum, the buckets are summed over processes meanwhile.
  void begin_leaf();
  /// Adds a leaf: the gradients of the weights contain it or have it added. `nats`: float64 scalar,
  /// `scored`: tokens.
  void add(const torch::Tensor& nats, std::int64_t scored);
  /// Completes the sum after the last leaf: the weights get the sum of all processes' gradients,
  /// and the update its loss and count. Collective.
  void finish(Update& update);

 private:
  struct Branch {
    std::vector<torch::Tensor> gradients;  ///< for each weight, contiguous; empty: stored in the
                                           ///< weights
    torch::Tensor nats;
  };
  Branch take();
  void add_to(Branch& left, const Branch& right) const;
  void sum_over_ranks(Branch& all);
  void sum_bucket(std::vector<torch::Tensor>& gradients, const std::vector<std::size_t>& bucket);

  const NamedWeights& weights_;
  ranks::Group& group_;
  GradientBuckets* buckets_;
  ranks::Sum how_;
  std::int64_t own_, block_, seen_ = 0, scored_ = 0;
  torch::Tensor nats_;                       // of the present block
  std::vector<std::optional<Branch>> tree_;  // [k]: sum of 2^k blocks
};

}  // namespace train
