#pragma once
// Sums gradients over processes on their device, in buckets, while the backward pass still runs.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/base/torch.h"
#include "ranks/group.h"
#include "train/gradient_hooks.h"
#include "train/optimiser.h"
#include "train/side_stream.h"

namespace train {

/// Returns the number of elements, at least `n`, after which the next gradient of a message begins.
/// Gradients start as aligned as tensors of their own, because the order of the sum of a gradient's
/// squares may depend on it.
inline std::int64_t aligned_elements(std::int64_t n) { return (n + 15) / 16 * 16; }

/// Bytes of a message of gradients.
inline constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;
/// Returns groups of consecutive weights, the last first, as the backward pass completes them: each
/// of at most `bytes`, or one weight.
std::vector<std::vector<std::size_t>> buckets_of(const NamedWeights& weights,
                                                 std::int64_t bytes = kBucketBytes);

/// The gradients of all weights, in buckets_of() them (Li et al. 2020, "PyTorch Distributed").
/// After arm(), a bucket is summed as soon as its gradients and all earlier buckets are complete,
/// on a stream of its own where the device has streams. Not thread safe; the hooks run in the
/// backward pass.
class GradientBuckets {
 public:
  /// `group` connects the weights' device. `weights` outlive this object.
  GradientBuckets(const NamedWeights& weights, ranks::Group& group, ranks::Sum how,
                  std::int64_t bucket_bytes = kBucketBytes);
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

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

}  // namespace train
