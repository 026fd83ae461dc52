#pragma once
// Products of float32 numbers with the tensor cores of NVIDIA GPUs, which round factors to TF32: 8
// bits of exponent and 10 of mantissa.

#include <cstdint>
#include <utility>

#include "nn/base/torch.h"

namespace nn {

/// Makes CUDA compute float32 products in TF32 while the object exists, if `on`. Not thread safe.
class Tf32 {
 public:
  explicit Tf32(bool on) : before_(at::globalContext().allowTF32CuBLAS()), on_(on) {
    if (on_) at::globalContext().setAllowTF32CuBLAS(true);
  }
  ~Tf32() {
    if (on_) at::globalContext().setAllowTF32CuBLAS(before_);
  }
  Tf32(const Tf32&) = delete;
  Tf32& operator=(const Tf32&) = delete;

 private:
  bool before_, on_;
};

/// Splits float32 numbers x into a TF32 number and the rest, whose sum is x. If the other factor is
/// TF32 too (float16 is), the sum of the products of both parts has relative errors near float32's:
/// the rest is rounded to 2^-11 of itself, thus to 2^-22 of x. The rest of an infinite x is 0.
inline std::pair<torch::Tensor, torch::Tensor> tf32_parts(const torch::Tensor& x) {
  constexpr std::int32_t kKept = ~0x1fff;  // all but the last 13 bits of 23
  const auto high = x.contiguous().view(torch::kInt32).bitwise_and(kKept).view(torch::kFloat32);
  return {high, (x - high).nan_to_num_(0, 0, 0)};
}

}  // namespace nn
