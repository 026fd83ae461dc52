#pragma once
// A softmax over rows of scores, in place, on a GPU: a block a row. On the CPU: row_softmax_ in
// nn/ops/softmax_rows.cpp.

#include <cstdint>

namespace nn {

/// R rows of n scores, `stride` apart, which become exp(score - the row's maximum). Written, (R)
/// each: the sum of those, the log-sum-exp of the scores, and the target's score less that.
struct SoftmaxRows {
  std::int64_t rows, n, stride;
  float* scores;
  const std::int64_t* targets;
  float *sum, *log_z, *log_prob;
};

/// Pointers are the device's. `stream` is a cudaStream_t. Returns a cudaError_t, 0 if the launch
/// went well.
int row_softmax_cuda(const SoftmaxRows& rows, void* stream);

}  // namespace nn
