#pragma once
// Weighted sums of rows of a large table: y_t = sum over j of weights_tj values_{rows_tj}.
// Gradients of tables of which a step reads few rows: torch's sparse tensors, of the table's shape,
// with one sparse dimension.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

/// Computes the sums (T, d) for values (N, d) floating, rows (T, J) int64 from 0 to N - 1, and
/// weights (T, J) of values' type. Differentiable in values and weights. On the CPU a loop reads
/// only the named rows, and the gradient of values is sparse: these rows, added in the order of the
/// sums, bit-identical for any number of threads (gathered_sum.h). Other devices use torch
/// operators, with a dense gradient.
torch::Tensor gathered_sum(
    const torch::Tensor& values, const torch::Tensor& rows, const torch::Tensor& weights);

/// While it exists, counts how often calls of gathered_sum() on this thread read each row of some
/// tables. The newest one of a thread counts.
class RowReads {
 public:
  /// `counts`: (N) int64 for each of `tables` (N, d), on its device; reads are added to it.
  RowReads(const std::vector<torch::Tensor>& tables, const std::vector<torch::Tensor>& counts);
  /// Adds the reads of `rows` int64 if `values` is one of the tables: those of real tokens.
  static void add(const torch::Tensor& values, const torch::Tensor& rows);
  /// Says which positions of the calls that follow are tokens and not padding: `real` (B, T) bool,
  /// on the CPU, in the order in which the calls have them.
  static void of_tokens(const torch::Tensor& real);

 private:
  const std::vector<torch::Tensor>&tables_, &counts_;
  torch::Tensor real_;
  core::ScopedValue<RowReads*> counting_;
};

/// The entries of a list of row numbers, by the row that they name.
struct RowsUsed {
  torch::Tensor rows;                ///< (R) int64, ascending, each once
  torch::Tensor order;               ///< (E) int64: entries that name the same row side by side, in
                                     ///< the order of the list
  std::vector<std::int64_t> starts;  ///< R + 1: where each row's entries begin in `order`
  std::int64_t count() const { return rows.size(0); }
};

/// `named` (E) int64 on the CPU.
RowsUsed rows_used(const torch::Tensor& named);

/// Makes the sparse gradient of a table of shape `sizes` from ascending `rows` (R) int64, each
/// once, and their gradients (R, ...).
torch::Tensor row_gradient(
    const torch::Tensor& rows, const torch::Tensor& values, torch::IntArrayRef sizes);

/// Returns the same gradient with ascending rows, each once; `sparse` as autograd accumulates it.
/// Gradients of a row are added in the order in which they lie. On the CPU, of a matrix.
torch::Tensor settled(const torch::Tensor& sparse);

/// Return a settled gradient's rows (R) and their values (R, ...).
inline torch::Tensor rows_of_gradient(const torch::Tensor& settled) {
  return settled._indices().select(0, 0);
}
inline torch::Tensor values_of_gradient(const torch::Tensor& settled) { return settled._values(); }

/// Returns a + b, of one shape, settled if both are sparse; a dense sum if one is dense. The bits
/// are those of dense tensors.
torch::Tensor sum_of_gradients(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace nn
