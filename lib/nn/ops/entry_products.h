#pragma once
// Products of queries and memory entries, and their gradients.

#include "nn/base/torch.h"

namespace nn {

/// Returns queries keys^T (R, M) for queries (R, width) and keys (M, width).
torch::Tensor entry_products(const torch::Tensor& queries, const torch::Tensor& keys);

/// Add the gradients for d (R, M), the gradient of the products: d_queries += d keys, d_keys += d^T
/// queries.
void add_query_gradient(
    const torch::Tensor& d, const torch::Tensor& keys, torch::Tensor& d_queries);
void add_entry_gradient(
    const torch::Tensor& d, const torch::Tensor& queries, torch::Tensor& d_keys);

}  // namespace nn
