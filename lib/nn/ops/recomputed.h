#pragma once
// What is computed a second time in the backward pass, so that nothing of it is kept until then
// (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").

#include <functional>
#include <vector>

#include "nn/base/torch.h"

namespace nn {

/// A tensor from `inputs`. It is called once, and once more with `again` for each backward pass,
/// when it must compute the same: what it changes outside it may change only the first time.
using Compute = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs, bool again)>;

/// compute(inputs, false), of which only the inputs are kept. Differentiable in the inputs and in
/// the `weights`, which are all leaves with gradient that `compute` reads; once, so no second
/// derivatives. Torch's generators and autocast are the second time as they were the first, so that
/// dropout's masks, and on one machine the values and gradients, are the same to the bit.
torch::Tensor recomputed(const std::vector<torch::Tensor>& inputs,
                         const std::vector<torch::Tensor>& weights, Compute compute);

}  // namespace nn
