#pragma once
// Decoding of attention with relative positions (nn/layers/relative_attention.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/layer_past.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"

namespace infer {

/// A RelativePart decodes attention with relative positions. It stores keys and values for each
/// row.
class RelativePart : public StatePart {
 public:
  /// `name`: prefix of the attention's weights; `biases`: prefix of the position biases; `clamp`:
  /// distance limit in tokens, 0: none.
  RelativePart(DecodeWeights& weights, const std::string& name, const std::string& biases,
               std::int64_t d, std::int64_t heads, LayerPast past, std::int64_t clamp);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  void attend(const Run& run, std::int64_t head, float* scores);

  std::int64_t d_, heads_, width_, clamp_;
  LayerPast past_;
  Affine in_, project_;
  const float *content_, *position_;  // biases, (heads, width)
  torch::Tensor of_distance_;         // (d, d)
  torch::Tensor distances_;           // (room, d): for distances room - 1, ..., 1, 0
  Buffer made_, asking_, read_;       // q, k, v (n, 3 d); q plus each bias (n, 2 d); (n, d)
  ScoreBuffers scores_;
  std::int64_t longest_ = 0;
};

}  // namespace infer
