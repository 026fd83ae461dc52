#pragma once
// All that is carried from call to call, for B rows: KV caches, recurrent cells, memory rings, a
// value still pending.

#include <map>
#include <set>
#include <string>

#include "nn/base/torch.h"

namespace nn {

/// Named tensors whose first dimension is the row. All zeros means "fresh", so that a row is reset
/// by zeroing it: keep lengths and validity as tensors of the row too. Counts are the same for all
/// rows (slots used of a buffer). There is no roll-back. Not thread safe.
class State {
 public:
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::int64_t> counts;
  /// Names of tensors whose first dimension is the step and the second the row, so that the last
  /// steps of all rows lie in one piece.
  std::set<std::string> by_step;

  bool empty() const { return tensors.empty(); }
  bool has(const std::string& name) const { return tensors.count(name) > 0; }
  /// Keeps rows in the order of `rows` (K) int64; a row may be taken twice (beam search).
  void select(const torch::Tensor& rows);
  /// Zeroes the rows where `fresh` (B) bool is true.
  void reset(const torch::Tensor& fresh);
  /// Cuts the gradient.
  void detach();
  void to(torch::Device device);
  /// Bytes of all tensors.
  std::int64_t bytes() const;

 private:
  std::int64_t row_dimension(const std::string& name) const { return by_step.count(name) > 0; }
};

}  // namespace nn
