#pragma once
// Softmax over rows of scores, in place.

#include <cstdint>

namespace nn {

/// R rows of n scores, `stride` apart. Each score becomes exp(score - the row's maximum). Outputs,
/// each (R): the sum of these values, the log-sum-exp of the scores, and the target's score minus
/// the log-sum-exp.
template <class Real> struct SoftmaxRows {
  std::int64_t rows, n, stride;
  Real* scores;
  const std::int64_t* targets;
  Real *sum, *log_z, *log_prob;
};

/// Computes rows [begin, end) in float or double.
template <class Real>
void row_softmax_cpu(const SoftmaxRows<Real>& rows, std::int64_t begin, std::int64_t end);

/// Computes all rows, one block per row. All pointers are device pointers and `stream` is a
/// cudaStream_t. Returns a cudaError_t, 0 if the launch succeeds.
int row_softmax_cuda(const SoftmaxRows<float>& rows, void* stream);

}  // namespace nn
