#pragma once
// Weights of a model, laid out for decoding.

#include <cstdint>

#include "infer/decode/decode_kernels.h"
#include "nn/base/torch.h"

namespace infer {

/// Of a weight (out, in), float32 or bfloat16, contiguous and on the CPU, the rows from `first`, as
/// many as `rows`. Where its type is the precision's it is borrowed if it can be, and must outlive
/// what is returned.
PackedMatrix pack(const torch::Tensor& weight, std::int64_t first, std::int64_t rows,
                  Precision precision);

}  // namespace infer
