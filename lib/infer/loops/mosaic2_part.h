#pragma once
// The two contextual memories of Memory Mosaics v2 (nn/arch/mosaic2_units.h), decoded side by side.

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/decode/paged_rows.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"
#include "nn/arch/mosaic2_units.h"

namespace infer {

/// A row keeps of each memory its keys' averages, the last key and value, and the pairs: token t
/// completes the pair that stands in its slot, so that the first token of a row has none.
class Mosaic2Part : public Part {
 public:
  /// `name`: of the layer. The reaches are those of short_term and long_term.
  Mosaic2Part(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
              const nn::PairReach& near, const nn::PairReach& far);
  void open(std::int64_t rows) override;
  void clear(std::size_t row) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  struct Kept {
    std::vector<float> sums, levels, key, value;  // (2 d), (2 heads), (2 d), (2 d)
  };
  struct Head {
    float beta_0, beta_1, alpha, value_scale, mix;  // as they are used
  };
  void head(const Run& run, std::int64_t head, float* scores);

  std::int64_t d_, heads_, width_;  // heads of one memory
  nn::PairReach near_, far_;
  Affine maps_, gates_, project_;
  std::vector<Head> of_head_;  // of the short-term memory, then of the other
  std::vector<Kept> kept_;
  PagedRows pairs_;
  Buffer mapped_, gated_, read_;  // (n, 4 d), (n, 4 heads), (n, 2 d)
  ScoreBuffers scores_;
};

}  // namespace infer
