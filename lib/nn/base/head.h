#pragma once
// From hidden vectors to log-probabilities, a block of rows at a time.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// Log-probabilities of one block of rows, with what its backward pass needs. No autograd graph is
/// made.
class HeadBlock {
 public:
  virtual ~HeadBlock() = default;
  torch::Tensor log_prob;  ///< (R): log p_head(target), nats
  torch::Tensor log_z;     ///< (R): log-sum-exp of the first level's scores
  /// Given dL/d log_prob and dL/d log_z, each (R): returns dL/df (R, d) and adds to `gradients`,
  /// which are shaped as Head::weights(). May be called once; the block is spent.
  virtual torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
                                 std::vector<torch::Tensor>& gradients) = 0;
};

/// What rows are to be followed by: (R) int64 where the rows are, and on the CPU too where that is
/// known, so that nobody needs to wait for it.
struct Targets {
  torch::Tensor there, host;

  Targets(torch::Tensor there_ = {}, torch::Tensor host_ = {})  // NOLINT: a tensor is targets too
      : there(std::move(there_)), host(std::move(host_)) {}
  torch::Tensor on_host() const { return host.defined() ? host : there.cpu(); }
  Targets slice(std::int64_t begin, std::int64_t end) const {
    return {there.slice(0, begin, end), host.defined() ? host.slice(0, begin, end) : host};
  }
};

/// A softmax over the vocabulary. The score of word w beside memories is log p(w) + log_z (papers:
/// TRIME joins the memories at the first level of the adaptive softmax; a cluster's own normaliser
/// stays inside its cluster).
class Head : public torch::nn::Module {
 public:
  virtual std::int64_t vocabulary() const = 0;
  /// Whether the scores are f W^T with W = weights()[0] (V, d): one band, no projection.
  virtual bool linear() const { return false; }
  /// All parameters that a block's backward reaches, tied ones included, in a fixed order.
  virtual std::vector<torch::Tensor> weights() = 0;
  /// f (R, d), R targets. With `gradient` the block can go backward. Uses no autograd.
  virtual std::unique_ptr<HeadBlock> block(const torch::Tensor& f, const Targets& targets,
                                           bool gradient) = 0;
  /// Whole rows, for sampling and beams: f (R, d) -> log p (R, V); log_z (R) is set if not null.
  virtual torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z = nullptr) = 0;
  /// Bytes one row of a block takes, so that callers can bound a block.
  virtual std::int64_t bytes_per_row() const = 0;
};

}  // namespace nn
