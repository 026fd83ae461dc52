#pragma once
// Prepends retrieved passages to windows.

#include <cstdint>
#include <vector>

#include "infer/windows/retriever.h"
#include "infer/windows/windows.h"
#include "nn/base/architecture.h"
#include "nn/base/batch.h"
#include "shard/dataset.h"

namespace infer {

/// Retrieves passages for windows. Not thread safe.
class WindowPrefixes {
 public:
  /// `plan` and `data` must outlive the object.
  WindowPrefixes(const WindowPlan& plan, const shard::Dataset& data);

  /// Retrieves passages similar to the text before the first scored token of each window, except
  /// those of that token's own document. Removes the oldest tokens of windows to make room. Finds
  /// none if the scored tokens leave no room.
  std::vector<Prefixes> find(std::vector<Span>& spans);

 private:
  std::vector<std::uint32_t> query(const Span& span) const;
  const std::vector<passages::UnitRange>& own_passages(std::uint64_t element);
  const WindowPlan& plan_;
  const shard::Dataset& data_;
  Retriever retriever_;
  std::uint64_t document_ = ~std::uint64_t{0};  // document of own_
  std::vector<passages::UnitRange> own_;
};

/// A batch whose rows begin with passages: one row for each passage, and at least one for each
/// window.
struct PrefixedBatch {
  nn::Batch batch;
  std::vector<std::int64_t> window;  ///< window of each row
  std::vector<std::int64_t> before;  ///< passage tokens of each row
  std::vector<double> weight;        ///< weight of each row
};
/// Prepends passages; `host` has one row for each of the windows' `lengths`, on the CPU.
PrefixedBatch prepend(const nn::Batch& host, const std::vector<std::int64_t>& lengths,
                      const std::vector<Prefixes>& prefixes);

/// Extracts the first row of each window from the output of a prefixed batch and removes the
/// passage: the shape of a batch of plain windows, (windows, steps, d).
nn::Hidden without_prefixes(const nn::Hidden& hidden, const PrefixedBatch& prefixed,
                            const std::vector<std::int64_t>& lengths);

}  // namespace infer
