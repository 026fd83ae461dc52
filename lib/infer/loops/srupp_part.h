#pragma once
// Decoding of an SRU++ layer (nn/arch/srupp.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/layer_past.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/base/model_options.h"

namespace infer {

/// A row's state is its cell, (d). Stores keys and values if the layer attends.
class SruppPart : public StatePart {
 public:
  SruppPart(DecodeWeights& weights, const std::string& name, const nn::ModelOptions& options,
            std::int64_t width, LayerPast past);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;
  Rows keys() const override { return normed_.rows(); }

 private:
  void attend(const Run& run, std::int64_t head, float* scores);

  std::int64_t d_, width_, heads_;
  LayerPast past_;
  bool attends_;
  Affine project_, keys_values_, expand_;
  float rezero_ = 0;
  LayerNormed norm_;
  SruCell cell_;
  Buffer asked_, made_, read_, normed_, gates_;  // (n, width), (n, 2 width), 2 (n, width), (n, 3 d)
  ScoreBuffers scores_;
};

}  // namespace infer
