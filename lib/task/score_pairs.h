#pragma once
// Two models' scores of the same tokens, read side by side: compare-ppl's work.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "task/bootstrap.h"

namespace task {

/// Sums of both models over blocks of tokens and over documents.
struct ScorePairs {
  std::vector<ScoreBlock> by_tokens, by_document;
  std::uint64_t tokens = 0;
};
/// Two --per-token files of eval-ppl in step; "-" is stdin. A block has `block` tokens. Throws
/// Error{bad_data} naming file and line where they do not score the same tokens.
ScorePairs read_score_pairs(const std::string& a, const std::string& b, std::uint64_t block);

/// What is drawn together: so many tokens, or documents.
struct BlockChoice {
  bool by_document = false;  ///< whatever the data
  bool open = true;          ///< by document if there are 50
  std::int64_t tokens = 512;

  bool documents(const ScorePairs& pairs) const;
};
/// "auto", "document", or a number of tokens. Throws Error{usage}.
BlockChoice block_choice_of(const std::string& text);

/// The record of a comparison: tokens, blocks, losses, perplexities, difference, interval, p.
core::OrderedJson figures(const Comparison& found, const ScorePairs& pairs,
                          const BlockChoice& choice);

}  // namespace task
