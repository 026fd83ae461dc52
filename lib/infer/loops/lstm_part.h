#pragma once
// Decoding of one LSTM layer (nn/arch/lstm.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"

namespace infer {

/// A row's state is h, then c. Rows advance together, step by step.
class LstmPart : public StatePart {
 public:
  LstmPart(DecodeWeights& weights, std::int64_t layer, std::int64_t in, std::int64_t width);
  std::int64_t out() const override { return width_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  std::int64_t width_;
  Affine of_input_, of_last_;
  std::vector<std::size_t> order_;  // runs by descending length: those with further steps come
                                    // first
  Buffer inputs_, lasts_, h_;       // (n, 4 width); (runs, 4 width); (runs, width), in that order
};

}  // namespace infer
