#pragma once
// Attention of one head of one sequence, with dropout on its weights or without, on the CPU,
// forward and backward, in tiles of queries x slots that stay in the second-level cache.

#include <cstdint>
#include <vector>

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/gemm.h"

namespace nn {

/// T queries, S slots. Where causal, S >= T and query i sees the slots up to its own, S - T + i.
struct TiledAttentionShape {
  std::int64_t queries, slots, width;
  float scale;  ///< of products of queries and keys
  bool causal;
};

/// o = dropout(softmax(scale q k^T + mask)) v. No (T, S) matrix: the backward pass computes the
/// weights again. Not thread safe: one a thread.
class TiledAttention {
 public:
  TiledAttention(const TiledAttentionShape& shape, const DropoutStream& stream);

  struct Inputs {
    Matrix q;     // (T, width)
    Matrix k, v;  // (S, width)
    // Finite, added to the scores: row i at mask + i mask_row; or null.
    const float* mask = nullptr;
    std::int64_t mask_row = 0;
    std::uint64_t head = 0;  // its number in the stream
  };
  /// Writes o (T, width) and each query's log-sum-exp (T), for backward.
  void forward(const Inputs& in, const MatrixOut& o, float* log_sums);

  struct Gradients {
    Matrix o, d_o;            // (T, width)
    MatrixOut dq;             // (T, width), overwritten
    MatrixOut dk, dv;         // (S, width)
    Into keys = Into::fresh;  // sum: dk and dv gain theirs
  };
  void backward(const Inputs& in, const float* log_sums, const Gradients& g);

 private:
  // Slots [begin, begin + size).
  struct Tile {
    std::int64_t begin, size;
  };
  // Queries [begin, begin + rows) and how many of a tile's slots the last of them sees.
  struct Block {
    std::int64_t begin, rows, seen;
  };
  // f(block) for each block that sees of the tile, in order.
  template <class F>
  void each_block(const Tile& tile, F f) const;
  std::int64_t seen(const Tile& tile, std::int64_t query) const;
  void score(const Inputs& in, const Tile& tile, const Block& block);

  TiledAttentionShape shape_;
  DropoutStream stream_;
  std::int64_t wide_;                               // a head's width, padded to whole lanes
  std::int64_t stride_;                             // of a tile's rows of scores
  std::vector<float> scores_, d_scores_;            // (rows of a block, slots of a tile)
  std::vector<float> queries_, d_o_;                // (rows of a block, wide): scaled queries
  std::vector<float> turned_keys_, turned_values_;  // (width, slots of a tile)
  std::vector<float> keys_, values_;                // (slots of a tile, wide)
  std::vector<float> dk_, dv_;                      // the same
  std::vector<float> out_;                          // (T, wide): o, or dq
  std::vector<float> max_, sum_, dots_;             // (T)
};

}  // namespace nn
