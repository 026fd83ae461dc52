#pragma once
// Retrieves passages similar to the end of a text.
// Prepends retrieved passages to windows.

#include "infer/windows/windows.h"
#include "passages/passage_index.h"

namespace infer {

/// A passage to prepend to a text.
struct Prefix {
  std::vector<std::int64_t> tokens;
  std::uint32_t passage = 0;  ///< index in the passage index
  double score = 0;           ///< BM25
  double weight = 1;          ///< sum 1 over the passages of a text
};
/// Passages, best first; empty if no passage contains a word of the query.
using Prefixes = std::vector<Prefix>;

/// The last tokens of a text, and passages to exclude.
struct RetrievalQuery {
  std::vector<std::uint32_t> tokens;
  std::vector<passages::UnitRange> without = {};
};

/// Retrieves passages. Caches words; not thread safe.
class Retriever {
 public:
  explicit Retriever(RetrievePlan plan);
  const RetrievePlan& plan() const { return plan_; }
  const passages::PassageIndex& index() const { return *plan_.index; }

  /// Returns the plan's `mix` best passages for each query, with at most its `tokens` tokens each.
  std::vector<Prefixes> find(std::span<const RetrievalQuery> queries);

 private:
  RetrievePlan plan_;
  passages::PassageQueries queries_;
  passages::BlockSearcher searcher_;
};

/// Returns the length of the longest passage in tokens.
std::int64_t longest(const Prefixes& prefixes);
/// Describes each passage: passage, score, weight, document, offset (of the passage in its
/// document, in tokens) and length.
core::OrderedJson to_json(const Prefixes& prefixes, const passages::PassageIndex& index);

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
