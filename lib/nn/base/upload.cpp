#include "nn/base/upload.h"

namespace nn {

torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options) {
  if (!x.is_cpu() || options.device().is_cpu()) return x.to(options);
  return x.to(options.device(torch::kCPU)).pin_memory().to(options.device(), /*non_blocking=*/true);
}

}  // namespace nn
