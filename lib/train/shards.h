#pragma once
// The numbers of a run's weights, cut into pieces of which each process keeps its own (ZeRO:
// Rajbhandari et al. 2020).

#include "train/gradient_sum.h"

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
std::vector<std::vector<Piece>> cut_in_pieces(
    const NamedWeights& weights, const OptimiserOptions& options, std::int64_t ranks);

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
  const std::vector<Piece>& own_pieces() const { return pieces_[rank()]; }

  /// Gives own() the weights' gradients; a weight without gradient has gradient 0.
  void take_gradients();
  /// Frees the gradients of own().
  void drop_gradients();
  /// Adds the processes' gradients of some weights: gradients[i] is that of weight which[i],
  /// contiguous, and is freed before the message is sent if nobody else has it. Returns the sum for
  /// each own piece of these weights, in the order of own_pieces(), added as by
  /// Group::reduce_scatter(). Where the ranks are connected for a device with streams, the sums are
  /// made beside the current stream: call follow_sums() before reading them. At most one message is
  /// on its way meanwhile. Collective.
  std::vector<torch::Tensor> reduce(
      const std::vector<std::size_t>& which, std::vector<torch::Tensor> gradients, ranks::Sum how);
  /// Makes the current stream wait for the sums of all calls of reduce().
  void follow_sums();
  /// Returns the indices of own_pieces() that are of these weights, in order.
  std::vector<std::size_t> own_of(const std::vector<std::size_t>& which) const;
  /// Gives every process the others' pieces, in all weights that are not away. Collective.
  void spread();
  /// Returns the norm of the gradients of all processes' own(), equal to gradient_norm() of whole
  /// weights; in host memory to the bit. Where the ranks are connected for the device, the host
  /// does not wait. Collective.
  torch::Tensor norm();

  /// Frees the memory of some weights; own() keep their pieces. To be called once, before own() is
  /// used.
  void send_away(const std::vector<std::size_t>& which);
  bool is_away(std::size_t weight) const { return away_[weight]; }
  /// Gives weights that are away memory and their numbers, beside the current stream where the
  /// ranks are connected for the device: the current stream must follow() before it reads or drops
  /// them. Collective.
  Queued fetch(const std::vector<std::size_t>& which);
  /// Frees the memory that weights have from fetch().
  void drop(const std::vector<std::size_t>& which);
  /// As fetch(), but fills only the first process's weights, on the current stream. Collective.
  void fetch_on_first(const std::vector<std::size_t>& which);
  /// Returns whether fetch() works while the device computes.
  bool fetches_ahead() const { return group_->connects(device()); }

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
  // Takes all pieces of these weights into them, on the first process alone if asked.
  void exchange_pieces(const std::vector<std::size_t>& which, bool first_alone);
  torch::Tensor norm_in_blocks();
  torch::Tensor norm_on_device();
  std::vector<torch::Tensor> gather_on_first(
      const torch::Tensor& own, const std::vector<std::int64_t>& lengths);
  // One after the other, where the ranks exchange tensors.
  torch::Tensor laid_flat(std::vector<torch::Tensor> numbers) const;
  torch::Device device() const { return weights_.front().second.device(); }
  std::size_t rank() const { return static_cast<std::size_t>(group_->rank()); }
  std::size_t ranks() const { return pieces_.size(); }

  NamedWeights weights_, own_;
  std::shared_ptr<ranks::Group> group_;
  std::vector<std::vector<Piece>> pieces_;  // of each rank
  std::vector<bool> away_;                  // of each weight
  std::vector<std::vector<std::size_t>> buckets_;
  SideStream side_;  // of transfers
  struct Message {
    std::vector<torch::Tensor> slices;  // which the transfer reads
    Queued sum;
  } message_;  // the last of reduce()
};

}  // namespace train
