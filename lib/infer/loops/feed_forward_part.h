#pragma once
// Decoding of a transformer's feed-forward network, and of a single affine map.

#include <optional>
#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"
#include "nn/layers/layers.h"

namespace infer {

/// Computes c_proj(activation(c_fc(x))) with weights NAME.c_fc and NAME.c_proj. A gated network has
/// twice as many outputs of c_fc and projects activation(first half) * second half.
class FeedForwardPart : public Part {
 public:
  FeedForwardPart(const DecodeWeights& weights, const std::string& name, std::int64_t d,
                  std::int64_t inner, nn::Activation activation, bool gated = false);
  std::int64_t out() const override { return reduce_.matrix.out(); }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  Affine expand_, reduce_;
  std::optional<Affine> factor_;  // gated: second half of c_fc
  nn::Activation activation_;
  Buffer inner_, factors_;
};

class AffinePart : public Part {
 public:
  explicit AffinePart(Affine map) : map_(std::move(map)) {}
  std::int64_t out() const override { return map_.matrix.out(); }
  void prepare(const Chunk& chunk) override { (void)chunk; }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    map_.multiply(x.data, chunk.n, x.stride, share, y, ldy);
  }

 private:
  Affine map_;
};

}  // namespace infer
