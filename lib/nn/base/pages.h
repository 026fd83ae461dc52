#pragma once
// Pages of tensors that lie in a mapped file: what the system may drop, and what it should read.

#include "nn/base/torch.h"

namespace nn {

/// Tells the system that it may drop the pages that lie wholly in `part`, contiguous and of a
/// mapped file: they are read again when touched. A page that was written to loses what was
/// written.
void drop_pages(const torch::Tensor& part);
/// Tells the system that rows of `table` will be read in no order, so that it reads no neighbours.
void expect_any_row(const torch::Tensor& table);
/// Asks the system to begin to read the pages of `rows` (...) int64 of `table` (N, d), contiguous
/// and of a mapped file. Returns at once; on other devices than the CPU does nothing.
void read_rows_ahead(const torch::Tensor& table, const torch::Tensor& rows);

}  // namespace nn
