#include "infer/loops/part.h"

namespace infer {
namespace {

void activate(nn::Activation activation, float* x, std::int64_t n) {
  switch (activation) {
    case nn::Activation::gelu: return gelu(x, n);
    case nn::Activation::gelu_exact: return gelu_exact(x, n);
    case nn::Activation::relu: return relu(x, n);
    case nn::Activation::silu: return silu(x, n);
  }
}

}  // namespace

FeedForward::FeedForward(DecodeWeights& weights, const WeightAndBias& expand,
    const WeightAndBias& reduce, std::int64_t d, std::int64_t inner, nn::Activation activation,
    bool gated)
    : expand_(weights.affine(expand, gated ? 2 * inner : inner, d, 0, inner)),
      reduce_(weights.affine(reduce, d, inner)), activation_(activation) {
  if (gated) factor_ = weights.affine(expand, 2 * inner, d, inner, inner);
}

void FeedForward::fit(Room& room, std::int64_t n) const {
  room.inner.fit(n, reduce_.matrix.padded_in());
  if (factor_) room.factors.fit(n, room.inner.stride());
}

void FeedForward::run(
    std::int64_t n, TeamShare share, Rows x, Room& room, float* y, std::int64_t ldy) const {
  auto& [inner, factors] = room;
  expand_.multiply(x.data, n, x.stride, share, inner.data(), inner.stride());
  if (factor_) factor_->multiply(x.data, n, x.stride, share, factors.data(), factors.stride());
  const auto [first, last] = expand_.range(share);
  for (std::int64_t i = 0; i < n; ++i) {
    activate(activation_, inner.row(i) + first, last - first);
    if (factor_) times(factors.row(i) + first, last - first, inner.row(i) + first);
  }
#pragma omp barrier
  reduce_.multiply(inner.data(), n, inner.stride(), share, y, ldy);
}

}  // namespace infer
