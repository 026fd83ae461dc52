#pragma once
// Decoding of the two contextual memories of Memory Mosaics v2 (nn/arch/mosaic2_units.h), side by
// side.

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"
#include "nn/arch/mosaic2_units.h"

namespace infer {

/// Stores the pairs of each row. A row's state is, for both memories, the key averages, the last
/// keys and the last values, (2 d) each, then the levels (2 heads). Token t completes the pair in its
/// slot, so a row's first token has no pair.
class Mosaic2Part : public StatePart {
 public:
  /// `name`: of the layer. `near` and `far` are the reaches of short_term and long_term.
  Mosaic2Part(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
              const nn::PairReach& near, const nn::PairReach& far);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  struct Head {
    float beta_0, beta_1, alpha, value_scale, mix;  // values after transformation
  };
  void head(const Run& run, std::int64_t head, float* scores);

  std::int64_t d_, heads_, width_;  // number of heads of one memory
  nn::PairReach near_, far_;
  Affine maps_, gates_, project_;
  std::vector<Head> of_head_;     // short-term memory first
  Buffer mapped_, gated_, read_;  // (n, 4 d), (n, 4 heads), (n, 2 d)
  ScoreBuffers scores_;
};

}  // namespace infer
