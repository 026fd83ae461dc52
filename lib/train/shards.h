#pragma once
// The numbers of a run's weights, cut into pieces of which each process keeps its own (ZeRO:
// Rajbhandari et al. 2020).

#include <cstdint>
#include <memory>
#include <vector>

#include "model/checkpoint.h"
#include "nn/base/torch.h"
#include "ranks/group.h"
#include "train/optimiser.h"
#include "train/train_options.h"

namespace train {

/// A range [begin, end) of a weight's numbers, in row-major order.
struct Piece {
  std::size_t weight;
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Returns each rank's pieces, by weight. A weight of at least kNormBlock numbers for each rank is
/// cut into one piece for each, at multiples of kNormBlock; the others are given away whole, the
/// largest first, each to the rank that has the fewest numbers by then. Muon's matrices stay whole.
std::vector<std::vector<Piece>> cut_in_pieces(const NamedWeights& weights,
                                              const OptimiserOptions& options, std::int64_t ranks);

/// The pieces of a group. Not thread safe.
class Shards {
 public:
  Shards(const NamedWeights& weights, const OptimiserOptions& options,
         std::shared_ptr<ranks::Group> group);

  const NamedWeights& weights() const { return weights_; }
  /// Returns this process's pieces, which share their numbers with the weights unless these are
  /// away: what its optimiser steps. A whole weight has its shape; a part has as many dimensions,
  /// all 1 but the last.
  const NamedWeights& own() const { return own_; }
  const std::vector<Piece>& own_pieces() const;

  /// Gives own() the weights' gradients; a weight without gradient has gradient 0.
  void take_gradients();
  /// Frees the gradients of own().
  void drop_gradients();
  /// Adds the processes' gradients of some weights: gradients[i] is that of weight which[i],
  /// contiguous, and is freed before the message is sent if nobody else has it. Returns the sum for
  /// each own piece of these weights, in the order of own_pieces(). The sum is ((r0 + r1) + (r2 +
  /// r3)) + ... for a power of two and Sum::tree, else in order of rank. Collective.
  std::vector<torch::Tensor> reduce(const std::vector<std::size_t>& which,
                                    std::vector<torch::Tensor> gradients, ranks::Sum how);
  /// Returns the indices of own_pieces() that are of these weights, in order.
  std::vector<std::size_t> own_of(const std::vector<std::size_t>& which) const;
  /// Gives every process the others' pieces, in all weights that are not away. Collective.
  void spread();
  /// Returns the norm of the gradients of all processes' own(), equal to gradient_norm() of whole
  /// weights; on the CPU to the bit. Collective.
  torch::Tensor norm();

  /// Frees the memory of some weights; own() keep their pieces. To be called once, before own() is
  /// used.
  void send_away(const std::vector<std::size_t>& which);
  bool is_away(std::size_t weight) const { return away_[weight]; }
  /// fetch() gives weights that are away memory and their numbers, drop() frees it again. fetch()
  /// is collective; with `first_alone` only the first process's weights are filled.
  void fetch(const std::vector<std::size_t>& which, bool first_alone = false);
  void drop(const std::vector<std::size_t>& which);

  /// Gives own() pieces of weights that are away the numbers of `whole`, in the order of weights().
  void take_away(const NamedWeights& whole);

  /// Save and restore the moments of own(), and the weights that are away. A checkpoint has parts
  /// then, and may be restored by any number of processes.
  void put(model::Checkpoint& checkpoint, const Optimiser& optimiser) const;
  void get(const model::Checkpoint& checkpoint, Optimiser& optimiser);

  /// buckets_of() the weights: what is sent at a time.
  const std::vector<std::vector<std::size_t>>& buckets() const { return buckets_; }

 private:
  // Pieces of a rank that are of these weights, by weight.
  std::vector<Piece> pieces_of(std::size_t rank, const std::vector<std::size_t>& which) const;
  void exchange_pieces(const std::vector<std::size_t>& which, bool first_alone);
  std::size_t rank() const { return static_cast<std::size_t>(group_->rank()); }
  std::size_t ranks() const { return pieces_.size(); }

  NamedWeights weights_, own_;
  std::shared_ptr<ranks::Group> group_;
  std::vector<std::vector<Piece>> pieces_;  // of each rank
  std::vector<bool> away_;                  // of each weight
  std::vector<std::vector<std::size_t>> buckets_;
};

}  // namespace train
