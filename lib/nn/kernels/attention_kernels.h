#pragma once
// Causal attention of one head of one sequence on the CPU, forward and backward, in blocks of rows.

#include <cstdint>
#include <vector>

#include "nn/kernels/gemm.h"

namespace nn {

/// Causal softmax attention, a block of query rows at a time: no (T, T) matrix. All matrices are
/// (T, width), float32. Not thread safe: one a thread.
class CausalAttention {
 public:
  CausalAttention(std::int64_t steps, float scale);

  struct Inputs {
    Matrix q, k, v;
  };
  /// o = softmax(scale q k^T, causal) v; log_sums (T): log-sum-exp of each row, for backward.
  void forward(const Inputs& in, const MatrixOut& o, float* log_sums);

  struct Gradients {
    Matrix o, d_o;
    MatrixOut dq, dk, dv;
    Into keys = Into::fresh;  ///< sum: dk and dv gain theirs
  };
  /// Overwrites dq, and dk and dv unless they are to gain.
  void backward(const Inputs& in, const float* log_sums, const Gradients& g);

 private:
  std::int64_t steps_;
  /// Queries of a block.
  std::int64_t rows_;
  float scale_;
  /// (rows_, T) each.
  std::vector<float> scores_, d_scores_;
};

}  // namespace nn
