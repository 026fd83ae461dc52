#pragma once
// Packs a model's weights for decoding.

#include <cstdint>

#include "infer/decode/decode_kernels.h"
#include "nn/base/torch.h"

namespace infer {

/// Packs `rows` rows from `first` on of a weight (out, in), float32 or bfloat16, contiguous, on the
/// CPU. References the weight if its type and layout permit; the weight must then outlive the
/// result.
PackedMatrix pack(const torch::Tensor& weight, std::int64_t first, std::int64_t rows,
                  Precision precision);

}  // namespace infer
