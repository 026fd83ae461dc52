#pragma once
// The sum of an update's gradients and losses, in an order that does not depend on how many
// processes share the update.

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/base/torch.h"
#include "ranks/group.h"
#include "train/optimiser.h"
#include "train/train_options.h"
#include "train/update.h"

namespace train {

/// Of the option.
inline ranks::Sum sum_of(const Recipe& recipe) {
  return recipe.reduce == "fast" ? ranks::Sum::fast : ranks::Sum::tree;
}

/// An update's micro-batches are the leaves of a tree. There are 2^k m of them, m odd: m neighbours
/// are added one after the other, as autograd does; these blocks by pairs of neighbours, pairs of
/// pairs, and so on. So N processes with a 2^k / N of the blocks each, N a power of two, hold whole
/// branches, and what one process would have added last they add over the network. For any other N,
/// and for Sum::fast, each adds its own and c10d's allreduce the rest.
class GradientSum {
 public:
  /// `weights` have no gradient yet. `own`: leaves of this process, as many as of each other.
  GradientSum(const NamedWeights& weights, std::int64_t own, ranks::Group& group, ranks::Sum how);

  /// How many gradients one that sums `own` leaves holds at once, at most.
  static std::int64_t held(std::int64_t own, ranks::Sum how);

  /// The next leaf: its gradient stands in, or was added to, those of the weights. `nats`: float64
  /// scalar, `scored`: tokens.
  void add(const torch::Tensor& nats, std::int64_t scored);
  /// After the last leaf: the weights have the sum of all processes' gradients, and the update its
  /// loss and count. All processes at once.
  void finish(Update& update);

 private:
  struct Branch {
    std::vector<torch::Tensor> gradients;  ///< a weight, contiguous; empty: they are the weights'
    torch::Tensor nats;
  };
  Branch take();
  void add_to(Branch& left, const Branch& right) const;
  void sum_over_ranks(Branch& all);

  const NamedWeights& weights_;
  ranks::Group& group_;
  ranks::Sum how_;
  std::int64_t own_, block_, seen_ = 0, scored_ = 0;
  torch::Tensor nats_;                       // of the block so far
  std::vector<std::optional<Branch>> tree_;  // [k]: of 2^k blocks
};

}  // namespace train
