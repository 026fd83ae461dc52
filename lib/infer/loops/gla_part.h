#pragma once
// Decoding of gated linear attention (nn/arch/gla.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"
#include "infer/loops/turns.h"

namespace infer {

/// Supports --gla-update sum. A row's state is (heads, d_key, d_value); rotated keys include the
/// token's position in the row.
class GlaPart : public StatePart {
 public:
  GlaPart(const DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
          const std::string& decay, double norm_epsilon);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  void head(const Run& run, std::int64_t head);

  enum class Decay { gated, fixed, none };
  std::int64_t d_, heads_, d_key_, d_value_;  // the last two are for one head
  Decay decay_;
  Turns by_place_;  // rotations of queries and keys, with fixed decays
  Affine in_, gate_down_, gate_up_, project_;
  LayerNormed norm_;
  Buffer parts_, low_, decays_, read_;  // q, k, v, r (n, 3 d); (n, rank); (n, d / 2); (n, d)
  Buffer turns_;                        // cosines and sines (n, d_key)
};

}  // namespace infer
