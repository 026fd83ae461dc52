#pragma once
// Sums a step's gradients and losses in an order that does not depend on the number of processes.
// Sums gradients over processes on their device, in buckets, while the backward pass still runs.
// A stream of a device beside the current one, for transfers while the current one computes.

#include "ranks/group.h"
#include "train/update.h"

namespace train {

/// Returns the current stream of a device that has streams.
inline c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// Work that was queued on a stream. On the CPU it is done already.
class Queued {
 public:
  Queued() = default;
  explicit Queued(const c10::Stream& stream) : done_(c10::Event(stream.device_type())) {
    done_->record(stream);
  }
  /// Makes later work on the current stream of the device wait for this work. The host does not.
  void follow() const {
    if (done_) done_->block(current_stream(done_->device()));
  }

 private:
  std::optional<c10::Event> done_;
};

/// Not thread safe, but its calls may come from several threads in turn.
class SideStream {
 public:
  /// On the CPU there is no stream: work is done at once.
  explicit SideStream(torch::Device device) {
    if (!device.is_cpu())
      stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true);
  }
  bool exists() const { return stream_.has_value(); }

  /// Runs `work`, with this stream as the current one, behind all that is on the current stream. A
  /// tensor of the current stream that `work` reads must live until the current stream follows the
  /// result, since its memory is given out again without regard to this stream. Tensors that `work`
  /// makes may be freed after the current stream has read them.
  template <class Work> Queued run(const Work& work) const {
    if (!stream_) {
      work();
      return {};
    }
    const Queued before(current_stream(stream_->device()));
    const c10::StreamGuard on(*stream_);
    before.follow();
    work();
    return Queued(*stream_);
  }

 private:
  std::optional<c10::Stream> stream_;
};

/// Returns the number of elements, at least `n`, after which the next gradient of a message begins.
/// Gradients start as aligned as tensors of their own, because the order of the sum of a gradient's
/// squares may depend on it.
inline std::int64_t aligned_elements(std::int64_t n) { return (n + 15) / 16 * 16; }

/// Bytes of a message of gradients.
inline constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;
/// Returns groups of consecutive weights, the last first, as the backward pass completes them: each
/// of at most `bytes`, or one weight.
std::vector<std::vector<std::size_t>> buckets_of(
    const NamedWeights& weights, std::int64_t bytes = kBucketBytes);

/// The gradients of all weights, in buckets_of() them (Li et al. 2020, "PyTorch Distributed").
/// After arm(), a bucket is summed as soon as its gradients and all earlier buckets are complete,
/// on a stream of its own where the device has streams. Not thread safe; the hooks run in the
/// backward pass.
class GradientBuckets {
 public:
  /// `group` connects the weights' device. `weights` outlive this object.
  GradientBuckets(const NamedWeights& weights, ranks::Group& group, ranks::Sum how,
      std::int64_t bucket_bytes = kBucketBytes);
  GradientBuckets(GradientBuckets&&) = delete;

  /// Call before the backward pass that completes the gradients. Errors of a transfer are thrown by
  /// that pass.
  void arm();
  /// Replaces the weights' gradients by their sums over processes; a missing gradient counts as 0.
  /// Later work on the current stream follows the sums. If a gradient changed after its bucket was
  /// summed (on any process), sums all buckets again and overlaps no more. Collective.
  void finish();

  /// Returns the number of buckets that the last arm() summed in the backward pass.
  std::size_t overlapped() const { return overlapped_; }

 private:
  struct Bucket {
    std::vector<std::size_t> weights;
    std::int64_t elements = 0;
    std::size_t missing = 0;           // gradients that the armed backward pass has not completed
    torch::Tensor flat;                // their sum, or what is summed
    std::vector<torch::Tensor> parts;  // views of flat, for each weight
  };
  void completed(std::size_t weight);
  void start(Bucket& bucket);

  const NamedWeights& weights_;
  ranks::Group& group_;
  ranks::Sum how_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // of each weight
  std::vector<bool> completed_;         // each weight, by the armed backward pass
  std::size_t started_ = 0;             // buckets, of this step
  std::size_t overlapped_ = 0;
  bool armed_ = false, late_ = false, overlaps_ = true;
  SideStream side_;  // of sums
  Queued sums_;
  GradientHooks hooks_;  // last member, because they call completed()
};

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
