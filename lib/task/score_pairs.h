#pragma once
// Two models' scores of the same tokens, read side by side: compare-ppl's work.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "task/comparison.h"

namespace task {

/// Sums of both models over blocks of tokens and over documents.
struct ScorePairs {
  std::vector<ScoreBlock> by_tokens, by_document;
  std::uint64_t tokens = 0;
  std::uint64_t block = 0;  ///< tokens of a block of by_tokens; the last may have fewer
};

/// What one block is: a number of tokens, or a document.
struct BlockChoice {
  bool by_document = false;  ///< whatever the data
  bool open = true;          ///< documents if there are enough, else tokens by the text's length
  std::int64_t tokens = 0;   ///< where neither

  bool documents(const ScorePairs& pairs) const;
};
/// "auto", "document", or a number of tokens. Throws Error{usage}.
BlockChoice block_choice_of(const std::string& text);

/// The length of blocks that fits a text: a 64th of it, 8 to 512 tokens.
std::uint64_t block_for(std::uint64_t tokens);

/// Two --per-token files of eval-ppl in step; "-" is stdin. Where the choice names no length, it is
/// that of block_for(), rounded down to what is kept of a text beyond 2^18 tokens. Throws
/// Error{bad_data} naming file and line where they do not score the same tokens.
ScorePairs read_score_pairs(const std::string& a, const std::string& b, const BlockChoice& choice);

/// By documents or by blocks of tokens.
Comparison compare(const ScorePairs& pairs, const BlockChoice& choice, double confidence);

/// The record of a comparison: tokens, blocks, method, losses, perplexities, difference, interval,
/// p.
core::OrderedJson figures(const Comparison& found, const ScorePairs& pairs,
                          const BlockChoice& choice);

}  // namespace task
