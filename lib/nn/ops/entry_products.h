#pragma once
// Products of queries and a memory's entries, and their gradients.

#include "nn/base/torch.h"

namespace nn {

/// queries (R, width), keys (M, width) -> queries keys^T (R, M).
torch::Tensor entry_products(const torch::Tensor& queries, const torch::Tensor& keys);

/// Of d (R, M), the gradient of those: d_queries += d keys, and d_keys += d^T queries.
void add_query_gradient(const torch::Tensor& d, const torch::Tensor& keys,
                        torch::Tensor& d_queries);
void add_entry_gradient(const torch::Tensor& d, const torch::Tensor& queries,
                        torch::Tensor& d_keys);

}  // namespace nn
