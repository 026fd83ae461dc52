#pragma once
// Decoding of a transformer's feed-forward network, and of a single affine map.

#include <optional>
#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"
#include "nn/layers/layers.h"

namespace infer {

/// Computes reduce(activation(expand(x))). A gated network has twice as many outputs of expand and
/// reduces activation(first half) * second half.
class FeedForward {
 public:
  FeedForward(DecodeWeights& weights, const WeightAndBias& expand, const WeightAndBias& reduce,
              std::int64_t d, std::int64_t inner, nn::Activation activation, bool gated);

  /// Working memory, which the layers of an engine may share.
  struct Room {
    Buffer inner, factors;
  };
  /// Makes room for n rows; called before the parallel region.
  void fit(Room& room, std::int64_t n) const;
  /// Computes a thread's share of y (n, out) from x, as Part::run().
  void run(std::int64_t n, TeamShare share, Rows x, Room& room, float* y, std::int64_t ldy) const;
  /// Returns the map that computes y.
  const Affine& last() const { return reduce_; }

 private:
  Affine expand_, reduce_;
  std::optional<Affine> factor_;  // gated: second half of expand
  nn::Activation activation_;
};

/// A feed-forward network with weights NAME.c_fc and NAME.c_proj.
class FeedForwardPart : public Part {
 public:
  FeedForwardPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
                  std::int64_t inner, nn::Activation activation, bool gated = false)
      : network_(weights, weights.of(name + ".c_fc"), weights.of(name + ".c_proj"), d, inner,
                 activation, gated) {}
  std::int64_t out() const override { return network_.last().matrix.out(); }
  void prepare(const Chunk& chunk) override { network_.fit(room_, chunk.n); }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    network_.run(chunk.n, share, x, room_, y, ldy);
  }

 private:
  FeedForward network_;
  FeedForward::Room room_;
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
