#pragma once
// Applies a feed-forward network's activation in place.

#include "infer/decode/decode_kernels.h"
#include "nn/layers/layers.h"

namespace infer {

inline void activate(nn::Activation activation, float* x, std::int64_t n) {
  switch (activation) {
    case nn::Activation::gelu:
      return gelu(x, n);
    case nn::Activation::gelu_exact:
      return gelu_exact(x, n);
    case nn::Activation::relu:
      return relu(x, n);
    case nn::Activation::silu:
      return silu(x, n);
  }
}

}  // namespace infer
