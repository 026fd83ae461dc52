#pragma once
// Relative attention of one head of one sequence on the CPU, forward and backward, in blocks of
// queries.

#include <vector>

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/gemm.h"

namespace nn {

/// T queries and S slots; the last T slots belong to the queries. A query with slot s sees slots
/// max(first, s - before) to s. Row S - 1 of r is distance 0.
struct RelativeShape {
  std::int64_t queries, slots, width, first, before;
  float scale;
  DropoutStream dropout{0, 0};  // of weights, indexed by slot
  std::uint64_t head = 0;       // index in the dropout stream
};

/// Inputs of one head, float32.
struct RelativeInputs {
  Matrix content, position;  // (T, width): q + u, q + v
  Matrix k, v, r;            // (S, width)
};

struct RelativeGradients {
  Matrix d_out, out;                // (T, width)
  MatrixOut d_content, d_position;  // (T, width), overwritten
  MatrixOut d_k, d_v, d_r;          // (S, width), overwritten
};

/// Computes blocks of 64 queries, so that no (T, S) matrix is stored. Products with r are read
/// along diagonals instead of shifted. Not thread safe: use one object per thread.
class RelativeHead {
 public:
  explicit RelativeHead(const RelativeShape& shape);
  /// Writes out (T, width) and each query's log-sum-exp (T) for the backward pass.
  void forward(const RelativeInputs& in, const MatrixOut& out, float* log_sums);
  void backward(const RelativeInputs& in, const float* log_sums, const RelativeGradients& g);

 private:
  // Queries [begin, begin + rows) and the slots [low, end) that at least one of them sees.
  struct Block {
    std::int64_t begin, rows, low, end, first_r;
    std::int64_t seen() const { return end - low; }
  };
  Block block(std::int64_t begin) const;
  // Slots [begin, end) that one query of a block sees, relative to the block's low.
  struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  Range seen_by(const Block& block, std::int64_t a) const;
  void score(const RelativeInputs& in, const Block& block);
  std::int64_t low(std::int64_t query) const;

  RelativeShape shape_;
  // Each holds (rows of a block, visible slots of the block).
  std::vector<float> scores_, products_, d_scores_;
};

}  // namespace nn
