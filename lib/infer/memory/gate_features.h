#pragma once
// What gates see of a token: float64 on the CPU, a row a token, in the order of gate_kinds().

#include <array>

#include "infer/memory/ngram_memory.h"
#include "infer/stores/neighbours.h"
#include "nn/base/torch.h"

namespace infer {

/// Of log p (R, V), the model's own: (R, kConfidence).
torch::Tensor confidence_of(const torch::Tensor& log_probs);

/// How many of the nearest entries are looked at.
inline constexpr std::int64_t kGateNearest = 32;
/// (R, 4), NaN where nothing was found: the nearest score; how far the last that is looked at is
/// below it; the share of them with the nearest's label; the distinct labels among them, over how
/// many they are.
torch::Tensor gate_features_of(const Neighbours& found);

/// Of one n-gram context: log(1 + length of the suffix), whether one token only followed it,
/// the logarithm of how often it stands.
std::array<double, 3> gate_features_of(const NgramContext& context);

}  // namespace infer
