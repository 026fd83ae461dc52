#pragma once
// Transformer-XL written out from its score formula: one query and one key at a time, memories as
// lists of vectors.

#include <cstdint>
#include <vector>

#include "nn/layers/layer_memory_lengths.h"
#include "plain_transformer.h"

namespace plain {

/// The segments of one row in turn, each layer remembering its last inputs; with `detach` no
/// gradient goes through the memory. Hidden vectors of all tokens.
Output transformer_xl(const nn::ModelOptions& options, const Weights& weights,
                      const std::vector<std::vector<std::int64_t>>& segments, bool detach);

}  // namespace plain
