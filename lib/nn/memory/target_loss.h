#pragma once
// Distillation loss: a model learns a teacher's distribution beside the target token.

#include <vector>

#include "nn/base/batch.h"
#include "nn/base/head.h"
#include "nn/base/torch.h"
#include "nn/memory/joint_loss.h"

namespace nn {

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
