#pragma once
// Recomputes a function in the backward pass, so that its intermediate results are not stored (Chen
// et al. 2016, "Training Deep Nets with Sublinear Memory Cost").

#include "nn/base/recomputing.h"

namespace nn {

/// A function that computes a tensor from `inputs`. It is called once, and with `again` for each
/// backward pass. Both calls must compute equal results. The function may have side effects only in
/// the first call.
using Compute = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs, bool again)>;

/// Returns compute(inputs, false) and stores only the inputs. Differentiable once in the inputs and
/// in the `weights`; `weights` must be all leaves with gradient that `compute` reads. Torch's
/// generators and autocast are restored for the second call. Dropout masks are therefore
/// bit-identical, and on one machine values and gradients too. `lender`, if not null, lends the
/// first `lent` of the weights for each of the two calls.
torch::Tensor recomputed(const std::vector<torch::Tensor>& inputs,
    const std::vector<torch::Tensor>& weights, Compute compute,
    std::shared_ptr<WeightLender> lender = nullptr, std::size_t lent = 0);

}  // namespace nn
