#pragma once
// Transformer-XL written out from its score formula: one query and one key at a time, memories as
// lists of vectors.

#include <cstdint>
#include <vector>

#include "nn/layers/layer_memory.h"
#include "plain_transformer.h"

namespace plain {

/// Runs the segments of one row in turn; each layer remembers its last inputs. With `detach` no
/// gradient flows through the memory. Returns the hidden vectors of all tokens.
Output transformer_xl(const nn::ModelOptions& options, const Weights& weights,
    const std::vector<std::vector<std::int64_t>>& segments, bool detach);

}  // namespace plain
