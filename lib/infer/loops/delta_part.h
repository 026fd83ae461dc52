#pragma once
// Decoding of the gated delta rule (nn/arch/gla_mixers.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"

namespace infer {

/// A row's state is (heads, d_key, d_value), then the inputs that the convolution needs again,
/// (taps - 1, 2 d).
class DeltaPart : public StatePart {
 public:
  DeltaPart(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
            std::int64_t taps, double norm_epsilon);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  void head(const Run& run, std::int64_t head);

  std::int64_t d_, heads_, d_key_, d_value_, taps_;
  Affine in_, gates_, project_;
  const float* filters_ = nullptr;                             // (taps, 2 d)
  const float *log_rates_ = nullptr, *rate_biases_ = nullptr;  // (heads); null: no decay
  LayerNormed norm_;
  // q, k, v, r (n, 3 d); (n, 2 heads); q, k, v after the convolution, and errors (n, 3 d); (n, d)
  Buffer parts_, gated_, mixed_, read_;
};

}  // namespace infer
