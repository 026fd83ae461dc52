#include "nn/ops/long_convolution.h"

#include "nn/base/recomputing.h"
#include "nn/ops/host_loops.h"

namespace nn {
namespace {

constexpr std::int64_t kMostDirect = 32;  // steps

/// The next size whose transform is fast: a product of 2, 3 and 5.
std::int64_t smooth_size(std::int64_t size) {
  for (;; ++size) {
    auto rest = size;
    for (const std::int64_t prime : {2, 3, 5})
      while (rest % prime == 0) rest /= prime;
    if (rest == 1) return size;
  }
}

}  // namespace

torch::Tensor long_convolution(
    const torch::Tensor& x, const torch::Tensor& filter, std::int64_t steps) {
  using torch::Tensor;
  const ExactProducts exact_products;
  const auto type = accumulation_type(x);
  const auto all = x.size(1), taps = std::min(filter.size(1), all);
  const Tensor read = x.to(type), used = filter.narrow(1, 0, taps).to(type);
  const Tensor reversed = at::constant_pad_nd(used.flip(1), {all - taps, steps - 1});
  if (steps == 1) return (read * reversed.t()).sum(1, /*keepdim=*/true);
  if (steps <= kMostDirect) {
    // Step T - steps + i reads a window of the reversed filter that begins at steps - 1 - i.
    const Tensor windows = reversed.unfold(1, all, 1).flip(1);  // (d, steps, T)
    return windows.matmul(read.permute({2, 1, 0})).permute({2, 1, 0});
  }
  // What wraps around falls on steps that are left out.
  const auto size = smooth_size(std::max(all, steps + taps - 1));
  const Tensor product =
      at::fft_rfft(read.transpose(1, 2), size) * at::fft_rfft(used, size).unsqueeze(0);
  return at::fft_irfft(product, size).narrow(2, all - steps, steps).transpose(1, 2);
}

}  // namespace nn
