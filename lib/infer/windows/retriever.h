#pragma once
// Passages that are like the end of a text.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/json.h"
#include "infer/windows/retrieve_options.h"
#include "passages/passage_index.h"

namespace infer {

/// A passage that is prepended to a text.
struct Prefix {
  std::vector<std::int64_t> tokens;
  std::uint32_t passage = 0;  ///< its number in the index
  double score = 0;           ///< BM25
  double weight = 1;          ///< of those of one text together 1
};
/// The best first; none where no passage has a word of the query.
using Prefixes = std::vector<Prefix>;

/// The end of a text so far, and passages that are no answer.
struct RetrievalQuery {
  std::vector<std::uint32_t> tokens;
  std::vector<passages::UnitRange> without = {};
};

/// Remembers words; not thread safe.
class Retriever {
 public:
  explicit Retriever(RetrievePlan plan);
  const RetrievePlan& plan() const { return plan_; }
  const passages::PassageIndex& index() const { return *plan_.index; }

  /// Of each query the plan's `mix` best passages, of each at most its `tokens`.
  std::vector<Prefixes> find(std::span<const RetrievalQuery> queries);

 private:
  RetrievePlan plan_;
  passages::PassageQueries queries_;
  passages::BlockSearcher searcher_;
};

/// The longest of them, in tokens.
std::int64_t longest(const Prefixes& prefixes);
/// Describes each prefix: passage, score, weight, document, offset (of the passage in it, in
/// tokens) and length.
core::OrderedJson to_json(const Prefixes& prefixes, const passages::PassageIndex& index);

}  // namespace infer
