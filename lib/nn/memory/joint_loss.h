#pragma once
// The loss of a vocabulary and memories together, in blocks, with the gradient in the same pass.

#include "nn/base/batch.h"
#include "nn/base/head.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"

namespace nn {

/// How a loss is computed, on which nothing but rounding depends.
struct LossWork {
  std::int64_t block_bytes = 64 << 20;  ///< about the most that a block of rows takes
  bool tf32 = false;  ///< on a GPU float32 products read 10 bits of what they multiply
};
/// Blocks for a GPU with so much memory: small enough to leave room for a model, large enough for
/// few launches. 0, the CPU or unknown: what fits caches.
std::int64_t loss_block_bytes(std::int64_t device_memory);

/// Negative log-likelihood of each target under the head and the memories jointly (TRIME, eq. 2):
///   log p(w|c) = LSE{log p_head(w) + z, scores of visible entries labelled w}
///              - LSE{z, scores of visible entries}
/// f (B, T, d), g (B, T, d_key), batch.targets, weight and place (B, T); `entries` are the memory,
/// the batch's own among them (Entries::of) where rows are to see each other. Returns the scalar
/// sum of weight * nll, in nats; backward reaches f, g, the head's weights and, with rule.gradient,
/// the entries' keys. Never holds (tokens x vocabulary) or (tokens x memories). Without a visible
/// entry a query gets the head's own log-probability.
torch::Tensor joint_loss(const torch::Tensor& f, const torch::Tensor& g, const Batch& batch,
                         Head& head, const MemoryRule& rule, const Entries& entries,
                         const LossWork& work = {});

/// The loss of a softmax without memory whose targets are smoothed: of each target's mass E
/// (`smoothing`) goes to all other words alike (Szegedy et al. 2016; fairseq's
/// label_smoothed_cross_entropy). With e = E / (V - 1), a row's loss is
///   -(1 - E - e) log p(target) - e sum over all words w of log p(w).
/// f, batch and the result as joint_loss. Throws Error{usage} for E > 0 and a
/// head of several bands, whose scores do not add up so.
torch::Tensor smoothed_loss(const torch::Tensor& f, const Batch& batch, Head& head,
                            double smoothing, const LossWork& work = {});

/// What a joint distribution consists of, a row a token, without gradient. All (N) in the order of
/// the flattened batch.
struct RowScores {
  torch::Tensor log_prob;       ///< log p_head(target)
  torch::Tensor log_z;          ///< the head's first-level log-sum-exp
  torch::Tensor all, positive;  ///< memory masses (kUnseen: none)
};

/// log p of each row from its parts: (N) nats.
torch::Tensor join(const RowScores& scores);

}  // namespace nn
