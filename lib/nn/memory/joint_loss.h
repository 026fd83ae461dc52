#pragma once
// Joint loss of a vocabulary and memories, computed in blocks together with its gradient.

#include "nn/base/batch.h"
#include "nn/base/head.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"

namespace nn {

/// Settings of the computation, which affect the loss only by rounding.
struct LossWork {
  std::int64_t block_bytes = 64 << 20;  ///< approximate maximum memory of a block of rows
  bool tf32 = false;  ///< float32 products on a GPU use 10-bit mantissas of their factors
};
/// Returns the block size in bytes for a GPU with this memory: small enough to leave room for a
/// model, large enough for few launches. 0 (CPU or unknown): a size that fits caches.
std::int64_t loss_block_bytes(std::int64_t device_memory);

/// Returns the weighted sum of the negative log-likelihood of each target, in nats, under the head
/// and the memories jointly (TRIME, eq. 2):
///   log p(w|c) = LSE{log p_head(w) + z, scores of visible entries labelled w}
///              - LSE{z, scores of visible entries}
/// f (B, T, d), g (B, T, d_key); batch.targets, weight and place (B, T). `entries` are the memory,
/// including the batch's own (Entries::of) if rows may see one another. backward reaches f, g, the
/// head's weights and, with rule.gradient, the entries' keys. Never allocates (tokens x vocabulary)
/// or (tokens x memories). A query without visible entries gets the head's own log-probability.
torch::Tensor joint_loss(const torch::Tensor& f, const torch::Tensor& g, const Batch& batch,
                         Head& head, const MemoryRule& rule, const Entries& entries,
                         const LossWork& work = {});

/// Returns the loss of a softmax without memory and with label smoothing: a fraction E
/// (`smoothing`) of each target's mass is distributed evenly over all other tokens (Szegedy et al.
/// 2016; fairseq's label_smoothed_cross_entropy). With e = E / (V - 1), a row's loss is
///   -(1 - E - e) log p(target) - e sum over all tokens w of log p(w).
/// f, batch and the result are as in joint_loss. Throws Error{usage} for E > 0 and a head of
/// several bands, whose scores do not sum in this way.
torch::Tensor smoothed_loss(const torch::Tensor& f, const Batch& batch, Head& head,
                            double smoothing, const LossWork& work = {});

/// Components of a joint distribution for each token, without gradient; all (N) in the order of the
/// flattened batch.
struct RowScores {
  torch::Tensor log_prob;       ///< log p_head(target)
  torch::Tensor log_z;          ///< the head's first-level log-sum-exp
  torch::Tensor all, positive;  ///< log-masses of the memory (kUnseen: none)
};

/// Returns log p of each row from its components: (N) nats.
torch::Tensor join(const RowScores& scores);

}  // namespace nn
