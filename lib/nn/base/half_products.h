#pragma once
// Says that a processor has no products in bfloat16.

#include "nn/base/torch.h"

namespace nn {

/// Says, once a process, that products in bfloat16, which `option` requests, are slow: if `device`
/// is a CPU without them, or ATEN_CPU_CAPABILITY hides them.
void note_half_products(const std::string& option, torch::Device device);

}  // namespace nn
