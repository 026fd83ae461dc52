#include "infer/loops/feed_forward_part.h"

#include "infer/loops/activate.h"

namespace infer {

FeedForwardPart::FeedForwardPart(const DecodeWeights& weights, const std::string& name,
                                 std::int64_t d, std::int64_t inner, nn::Activation activation,
                                 bool gated)
    : expand_(weights.affine(name + ".c_fc", gated ? 2 * inner : inner, d, 0, inner)),
      reduce_(weights.affine(name + ".c_proj", d, inner)),
      activation_(activation) {
  if (gated) factor_ = weights.affine(name + ".c_fc", 2 * inner, d, inner, inner);
}

void FeedForwardPart::prepare(const Chunk& chunk) {
  inner_.fit(chunk.n, reduce_.matrix.padded_in());
  if (factor_) factors_.fit(chunk.n, inner_.stride());
}

void FeedForwardPart::run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) {
  expand_.multiply(x.data, chunk.n, x.stride, share, inner_.data(), inner_.stride());
  if (factor_)
    factor_->multiply(x.data, chunk.n, x.stride, share, factors_.data(), factors_.stride());
  const auto [first, last] = expand_.range(share);
  for (std::int64_t i = 0; i < chunk.n; ++i) {
    activate(activation_, inner_.row(i) + first, last - first);
    if (factor_) times(factors_.row(i) + first, last - first, inner_.row(i) + first);
  }
#pragma omp barrier
  reduce_.multiply(inner_.data(), chunk.n, inner_.stride(), share, y, ldy);
}

}  // namespace infer
