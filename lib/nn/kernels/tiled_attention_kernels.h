#pragma once
// Attention of one head of one sequence on the CPU, forward and backward, with optional dropout on
// the weights. It computes tiles of queries x slots that fit the second-level cache.

#include <vector>

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/gemm.h"

namespace nn {

/// T queries and S slots. If causal, S >= T and query i sees slots 0 to S - T + i.
struct TiledAttentionShape {
  std::int64_t queries, slots, width;
  float scale;  ///< scale of attention scores
  bool causal;
};

/// o = dropout(softmax(scale q k^T + mask)) v. No (T, S) matrix is stored: the backward pass
/// recomputes the weights. Not thread safe: use one object per thread.
class TiledAttention {
 public:
  TiledAttention(const TiledAttentionShape& shape, const DropoutStream& stream);

  struct Inputs {
    Matrix q;     // (T, width)
    Matrix k, v;  // (S, width)
    // Added to the scores; null: no mask. Row i is at mask + i mask_row. All values must be finite.
    const float* mask = nullptr;
    std::int64_t mask_row = 0;
    std::uint64_t head = 0;  // index in the dropout stream
  };
  /// Writes o (T, width) and each query's log-sum-exp (T) for the backward pass.
  void forward(const Inputs& in, const MatrixOut& o, float* log_sums);

  struct Gradients {
    Matrix o, d_o;            // (T, width)
    MatrixOut dq;             // (T, width), overwritten
    MatrixOut dk, dv;         // (S, width)
    Into keys = Into::fresh;  // sum: add to dk and dv instead
  };
  void backward(const Inputs& in, const float* log_sums, const Gradients& g);

 private:
  // Slots [begin, begin + size).
  struct Tile {
    std::int64_t begin, size;
  };
  // Queries [begin, begin + rows) and the number of slots of a tile that the last query sees.
  struct Block {
    std::int64_t begin, rows, seen;
  };
  // Calls f(block), in order, for each block that sees a slot of the tile.
  template <class F> void each_block(const Tile& tile, F f) const;
  std::int64_t seen(const Tile& tile, std::int64_t query) const;
  void score(const Inputs& in, const Tile& tile, const Block& block);

  TiledAttentionShape shape_;
  DropoutStream stream_;
  std::int64_t wide_;                               // a head's width, padded to whole vectors
  std::int64_t stride_;                             // row stride of scores of a tile
  std::vector<float> scores_, d_scores_;            // (rows of a block, slots of a tile)
  std::vector<float> queries_, d_o_;                // (rows of a block, wide): scaled queries
  std::vector<float> turned_keys_, turned_values_;  // (width, slots of a tile), transposed
  std::vector<float> keys_, values_;                // (slots of a tile, wide)
  std::vector<float> dk_, dv_;                      // (slots of a tile, wide)
  std::vector<float> out_;                          // (T, wide): o, or dq
  std::vector<float> max_, sum_, dots_;             // (T)
};

}  // namespace nn
