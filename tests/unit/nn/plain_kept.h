#pragma once
// The factors of attention weights from a dropout stream, one at a time.

#include "nn/base/torch.h"
#include "nn/kernels/dropout_stream.h"

namespace plain {

/// Returns factors of the weights, (rows, heads, queries, slots) float64: 0 or 1 / (1 - share).
inline torch::Tensor kept(std::int64_t rows, std::int64_t heads, std::int64_t queries,
    std::int64_t slots, const nn::DropoutStream& stream) {
  const auto factors = torch::empty({rows * heads, queries, slots}, torch::kFloat64);
  auto at = factors.accessor<double, 3>();
  for (std::int64_t head = 0; head < rows * heads; ++head)
    for (std::int64_t query = 0; query < queries; ++query) {
      const auto row =
          stream.row(static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(query));
      for (std::int64_t slot = 0; slot < slots; ++slot)
        at[head][query][slot] =
            row.drops(static_cast<std::uint32_t>(slot)) ? 0 : 1 / (1 - stream.share());
    }
  return factors.view({rows, heads, queries, slots});
}

}  // namespace plain
