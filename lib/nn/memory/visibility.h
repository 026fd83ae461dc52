#pragma once
// From places and a rule to the kernels that settle who sees whom.

#include "nn/base/memory_rule.h"
#include "nn/kernels/memory_kernels.h"

namespace nn {

/// The place with its three tensors contiguous.
Place contiguous(const Place& place);

/// Both places contiguous; they must outlive it.
SeenScores seen_scores(const Place& queries, const Place& entries, const MemoryRule& rule);

}  // namespace nn
