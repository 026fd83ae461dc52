#pragma once
// Windows with passages prepended to them: which, and how a model reads both.

#include <cstdint>
#include <optional>
#include <vector>

#include "infer/windows/retriever.h"
#include "infer/windows/windows.h"
#include "nn/base/architecture.h"
#include "nn/base/batch.h"
#include "shard/dataset.h"

namespace infer {

/// Looks for the passages of windows. Not thread safe.
class WindowPrefixes {
 public:
  /// Both must outlive it.
  WindowPrefixes(const WindowPlan& plan, const shard::Dataset& data);

  /// Passages like what stands before the first token that each window scores, but for those of
  /// the very document that this token is of. Makes room for them: windows lose their oldest
  /// tokens. None where so many tokens are scored that there is no room.
  std::vector<Prefixes> find(std::vector<Span>& spans);

 private:
  std::vector<std::uint32_t> query(const Span& span) const;
  const std::vector<passages::UnitRange>& own_passages(std::uint64_t element);
  const WindowPlan& plan_;
  const shard::Dataset& data_;
  Retriever retriever_;
  std::uint64_t document_ = ~std::uint64_t{0};  // whose are own_
  std::vector<passages::UnitRange> own_;
};

/// A batch whose rows have passages before them: one for each passage, at least one for each
/// window.
struct PrefixedBatch {
  nn::Batch batch;
  std::vector<std::int64_t> window;  ///< of each row
  std::vector<std::int64_t> before;  ///< of each row: tokens of its passage
  std::vector<double> weight;        ///< of each row
};
/// `host`: one row for each of the windows' `lengths`, on the CPU.
PrefixedBatch prepend(const nn::Batch& host, const std::vector<std::int64_t>& lengths,
                      const std::vector<Prefixes>& prefixes);

/// Takes the first row of each window out of a prefixed batch, without the passage: as if the
/// window had been read alone, (windows, steps, d).
nn::Hidden without_prefixes(const nn::Hidden& hidden, const PrefixedBatch& prefixed,
                            const std::vector<std::int64_t>& lengths);

}  // namespace infer
