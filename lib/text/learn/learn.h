#pragma once
// Tokenizers learned from text. Equal counts give equal tokenizers.

#include <cstdint>
#include <functional>

#include "text/learn/word_counts.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

struct LearnOptions {
  std::size_t vocabulary_size = 0;  ///< tokens in all, special ones too; 0: no limit
  std::uint64_t min_count = 1;      ///< words (word) or pairs (bpe) seen less often are left out
};

/// `<unk>`, `<eos>`, then the words by count, then by bytes (as fairseq's dictionaries). A word
/// that is not UTF-8 cannot stand in a tokenizer.json and is left out.
TokenizerPtr learn_words(const WordCounts& counts, const LearnOptions& options);

/// Byte-level BPE: the 256 bytes in the order of GPT-2's alphabet, then the merges' tokens, last
/// `<|endoftext|>`. Each step merges the pair that is most frequent in the words; of equally
/// frequent pairs the one with the lower left id, then the lower right id: the choice of Hugging
/// Face's trainer, so the merges are the same. Counts are 64-bit; a pair is counted at each place,
/// overlapping ones too, before it is merged from left to right. `progress` is called with the
/// number of tokens there are. Throws Error{usage} for a size below 257.
TokenizerPtr learn_bpe(const WordCounts& counts, const LearnOptions& options,
                       const std::function<void(std::uint64_t)>& progress);

}  // namespace text
