#pragma once
// Relative attention of one head of one sequence on the CPU, forward and backward, in blocks of
// queries.

#include <cstdint>
#include <vector>

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/gemm.h"

namespace nn {

/// T queries, S slots of which the last T are the queries' own; query i sees slots from
/// max(first, its own - before) to its own. r's row S - 1 is distance 0.
struct RelativeShape {
  std::int64_t queries, slots, width, first, before;
  float scale;
  DropoutStream dropout{0, 0};  // of weights, by the index of their slot
  std::uint64_t head = 0;       // its number in the stream
};

/// Of one head, float32.
struct RelativeInputs {
  Matrix content, position;  // (T, width): q + u, q + v
  Matrix k, v, r;            // (S, width)
};

struct RelativeGradients {
  Matrix d_out, out;                // (T, width)
  MatrixOut d_content, d_position;  // (T, width), overwritten
  MatrixOut d_k, d_v, d_r;          // (S, width), overwritten
};

/// No (T, S) matrix: blocks of 64 queries, whose products with r are read askew instead of being
/// shifted. Not thread safe: one a thread.
class RelativeHead {
 public:
  explicit RelativeHead(const RelativeShape& shape);
  /// Writes out (T, width) and each query's log-sum-exp (T), for backward.
  void forward(const RelativeInputs& in, const MatrixOut& out, float* log_sums);
  void backward(const RelativeInputs& in, const float* log_sums, const RelativeGradients& g);

 private:
  // Queries [begin, begin + rows) and the slots [low, end) that any of them sees.
  struct Block {
    std::int64_t begin, rows, low, end, first_r;
    std::int64_t seen() const { return end - low; }
  };
  Block block(std::int64_t begin) const;
  // The slots [begin, end) of a block's that one of its queries sees, counted from the block's low.
  struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  Range seen_by(const Block& block, std::int64_t a) const;
  void score(const RelativeInputs& in, const Block& block);
  std::int64_t low(std::int64_t query) const;

  RelativeShape shape_;
  // (rows of a block, its seen()) each.
  std::vector<float> scores_, products_, d_scores_;
};

}  // namespace nn
