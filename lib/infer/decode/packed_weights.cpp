#include "infer/decode/packed_weights.h"

namespace infer {

PackedMatrix pack(const torch::Tensor& weight, std::int64_t first, std::int64_t rows,
                  Precision precision) {
  const auto in = weight.size(1);
  if (weight.scalar_type() == torch::kBFloat16) {
    const auto* const halves =
        reinterpret_cast<const std::uint16_t*>(weight.const_data_ptr<at::BFloat16>());
    return {halves + first * in, rows, in, precision};
  }
  return {weight.const_data_ptr<float>() + first * in, rows, in, precision};
}

}  // namespace infer
