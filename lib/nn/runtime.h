#pragma once
// What every program that computes with torch sets first.

#include <cstdint>
#include <string>

#include "nn/torch.h"

namespace nn {

/// Threads, seed, denormals flushed to zero, and the allocator kept from giving memory back between
/// steps.
void start(std::int64_t threads, std::uint64_t seed);

/// "cpu", "cuda", "cuda:1", or "auto" (cuda if there is one). Throws Error{unavailable} naming what
/// is missing.
torch::Device device(const std::string& name);
/// "float32", "float64" or "bfloat16", what --precision takes.
torch::Dtype dtype(const std::string& precision);

}  // namespace nn
