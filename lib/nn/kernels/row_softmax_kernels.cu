#include "nn/kernels/launch.h"
#include "nn/kernels/row_softmax_kernels.h"

namespace nn {
namespace {

constexpr int kThreads = 512;

// Reads each row twice and writes it once.
__global__ void row_softmax(SoftmaxRows<float> s) {
  __shared__ float parts[kThreads / kWarp];
  const std::int64_t r = blockIdx.x;
  float* const row = s.scores + r * s.stride;
  const float hit = threadIdx.x == 0 ? row[s.targets[r]] : 0.0f;
  float most = row[0];
  for (std::int64_t i = threadIdx.x; i < s.n; i += kThreads) most = fmaxf(most, row[i]);
  most = block_max(most, parts);  // a barrier: all reads precede the writes
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < s.n; i += kThreads) {
    const float e = expf(row[i] - most);
    row[i] = e;
    sum += e;
  }
  sum = block_sum(sum, parts);
  if (threadIdx.x > 0) return;
  const float log_sum = logf(sum);
  s.sum[r] = sum;
  s.log_z[r] = most + log_sum;
  s.log_prob[r] = (hit - most) - log_sum;
}

}  // namespace

int row_softmax_cuda(const SoftmaxRows<float>& rows, void* stream) {
  return launch(row_softmax, dim3(static_cast<unsigned>(rows.rows)), kThreads, stream, rows);
}

}  // namespace nn
