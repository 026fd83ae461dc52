#pragma once
// Joint loss of a vocabulary and memories, computed in blocks together with its gradient.
// Distillation loss: a model learns a teacher's distribution beside the target token.

#include "nn/base/architecture.h"
#include "nn/base/memory_rule.h"

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
    Head& head, const MemoryRule& rule, const Entries& entries, const LossWork& work = {});

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

/// A teacher's distribution for each token of a batch: token ids `words` (B, T, M) int64, distinct
/// where the probability is not 0, and their probabilities `shares` (B, T, M) float32. The
/// remainder to 1 belongs to all other tokens together. A row with zeros has no teacher.
struct Teachers {
  torch::Tensor words, shares;
  bool any() const { return words.defined(); }
};

/// Returns the weighted sum of beta KL(p || q) + (1 - beta) -log q(target), in nats, for the
/// teacher's distribution p and the head's q (Memory Decoder, Cao et al. 2025, arXiv 2508.09874);
/// -log q(target) for tokens without a teacher. The divergence treats the tokens that the teacher
/// does not name as one outcome with the sum of their q: it equals the published one if the teacher
/// names all tokens, and is otherwise no larger. f (B, T, d); backward reaches f and the head's
/// weights. Never allocates (tokens x vocabulary). Throws Error{usage} for an adaptive softmax.
torch::Tensor target_loss(const torch::Tensor& f, const Batch& batch, Head& head,
    const Teachers& teachers, double beta, const LossWork& work = {});

}  // namespace nn
