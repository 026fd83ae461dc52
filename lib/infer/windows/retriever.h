#pragma once
// Retrieves passages similar to the end of a text.

#include <cstdint>
#include <span>
#include <vector>

#include "core/json.h"
#include "infer/windows/retrieve_options.h"
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

}  // namespace infer
