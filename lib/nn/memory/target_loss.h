#pragma once
// The loss of a model that learns what a teacher says of each token beside the token itself.

#include <vector>

#include "nn/base/batch.h"
#include "nn/base/head.h"
#include "nn/base/torch.h"
#include "nn/memory/joint_loss.h"

namespace nn {

/// What a teacher says, a row a token of the batch: words (B, T, M) int64, each once where its
/// share is not 0, and their shares (B, T, M) float32. What is missing to 1 is of all other words
/// together; a row whose shares are all 0 has no teacher.
struct Teachers {
  torch::Tensor words, shares;
  bool any() const { return words.defined(); }
};

/// beta KL(p || q) + (1 - beta) -log q(target), with p the teacher's and q the head's distribution
/// (Memory Decoder, Cao et al. 2025, arXiv 2508.09874), in nats; where there is no teacher -log
/// q(target). The words that the teacher does not name are one outcome of the divergence, with q
/// the sum of theirs: with all words named it is the published one, else no larger. f (B, T, d);
/// the result is the sum of weight * loss; backward reaches f and the head's weights. Never holds
/// (tokens x vocabulary). Throws Error{usage} for a head of several bands.
torch::Tensor target_loss(const torch::Tensor& f, const Batch& batch, Head& head,
                          const Teachers& teachers, double beta, const LossWork& work = {});

}  // namespace nn
