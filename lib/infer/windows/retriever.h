#pragma once
// Passages that are like the end of a text.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/json.h"
#include "infer/windows/retrieve_options.h"
#include "text/pack/passage_index.h"

namespace infer {

/// A passage that stands in front of a text.
struct Front {
  std::vector<std::int64_t> tokens;
  std::uint32_t passage = 0;  ///< its number in the index
  double score = 0;           ///< BM25
  double weight = 1;          ///< of those of one text together 1
};
/// The best first; none where no passage has a word of the query.
using Fronts = std::vector<Front>;

/// The end of a text so far, and passages that are no answer.
struct FrontQuery {
  std::vector<std::uint32_t> tokens;
  std::vector<text::UnitRange> without = {};
};

/// Remembers words; not thread safe.
class Retriever {
 public:
  explicit Retriever(RetrievePlan plan);
  const RetrievePlan& plan() const { return plan_; }
  const text::PassageIndex& index() const { return *plan_.index; }

  /// Of each query the plan's `mix` best passages, of each at most its `tokens`.
  std::vector<Fronts> find(std::span<const FrontQuery> queries);

 private:
  RetrievePlan plan_;
  text::PassageQueries queries_;
  text::BlockSearcher searcher_;
};

/// The longest of them, in tokens.
std::int64_t longest(const Fronts& fronts);
/// Of each passage, score, weight, document and offset (of the passage in it, in tokens), and
/// length, of what stands in front.
core::OrderedJson to_json(const Fronts& fronts, const text::PassageIndex& index);

}  // namespace infer
