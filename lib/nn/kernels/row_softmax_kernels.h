#pragma once
// A softmax over rows of scores, in place.

#include <cstdint>

namespace nn {

/// R rows of n scores, `stride` apart, which become exp(score - the row's maximum). Written, (R)
/// each: the sum of those, the log-sum-exp of the scores, and the target's score less that.
template <class Real>
struct SoftmaxRows {
  std::int64_t rows, n, stride;
  Real* scores;
  const std::int64_t* targets;
  Real *sum, *log_z, *log_prob;
};

/// Rows [begin, end), of float or double.
template <class Real>
void row_softmax_cpu(const SoftmaxRows<Real>& rows, std::int64_t begin, std::int64_t end);

/// A block a row. Pointers are the device's. `stream` is a cudaStream_t. Returns a cudaError_t, 0
/// if the launch went well.
int row_softmax_cuda(const SoftmaxRows<float>& rows, void* stream);

}  // namespace nn
