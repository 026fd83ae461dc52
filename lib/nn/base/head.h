#pragma once
// Computes log-probabilities from hidden vectors, one block of rows at a time.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// Log-probabilities of a block of rows and the data for their backward pass. Builds no autograd
/// graph.
class HeadBlock {
 public:
  virtual ~HeadBlock() = default;
  torch::Tensor log_prob;  ///< (R): log p_head(target), nats
  torch::Tensor log_z;     ///< (R): log-sum-exp of the first level's scores
  /// Returns dL/df (R, d), given dL/d log_prob and dL/d log_z, each (R), and adds to `gradients`,
  /// which have the shapes of Head::weights(). Call it at most once for each block.
  virtual torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
                                 std::vector<torch::Tensor>& gradients) = 0;
};

/// Targets of rows: (R) int64 on the device of the rows, with an optional CPU copy that saves a
/// synchronisation.
struct Targets {
  torch::Tensor there, host;

  Targets(torch::Tensor there_ = {}, torch::Tensor host_ = {})  // NOLINT: a tensor is targets too
      : there(std::move(there_)), host(std::move(host_)) {}
  torch::Tensor on_host() const { return host.defined() ? host : there.cpu(); }
  Targets slice(std::int64_t begin, std::int64_t end) const {
    return {there.slice(0, begin, end), host.defined() ? host.slice(0, begin, end) : host};
  }
};

/// A softmax over the vocabulary. Beside memories, the score of token w is log p(w) + log_z (TRIME
/// joins the memories at the first level of the adaptive softmax; each cluster keeps its own
/// normaliser).
class Head : public torch::nn::Module {
 public:
  virtual std::int64_t vocabulary() const = 0;
  /// Returns whether the scores are f W^T with W = weights()[0] (V, d): one band, no projection.
  virtual bool linear() const { return false; }
  /// Returns all parameters that a block's backward reaches, including tied ones, in a fixed order.
  virtual std::vector<torch::Tensor> weights() = 0;
  /// Computes a block: f (R, d), R targets. backward() is available if `gradient`. Uses no
  /// autograd.
  virtual std::unique_ptr<HeadBlock> block(const torch::Tensor& f, const Targets& targets,
                                           bool gradient) = 0;
  /// Returns log p (R, V) of whole rows f (R, d), for sampling and beam search; sets log_z (R) if
  /// not null.
  virtual torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z = nullptr) = 0;
  /// Returns the bytes that one row of a block needs, so that callers can limit the block size.
  virtual std::int64_t bytes_per_row() const = 0;
};

}  // namespace nn
