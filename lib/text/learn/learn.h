#pragma once
// Learns tokenizers from word counts. Equal counts give equal tokenizers.

#include <cstdint>
#include <functional>

#include "text/learn/word_counts.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// LearnOptions limits the vocabulary.
struct LearnOptions {
  std::size_t vocabulary_size = 0;  ///< total number of tokens, including special ones; 0: no limit
  std::uint64_t min_count = 1;      ///< minimum count of words (word) or pairs (bpe)
};

/// Learns a word tokenizer: `<unk>`, `<eos>`, then the words by count, then by bytes (as fairseq's
/// dictionaries). A word that is not UTF-8 is left out, because a tokenizer.json cannot hold it.
TokenizerPtr learn_words(const WordCounts& counts, const LearnOptions& options);

/// Learns byte-level BPE: the 256 bytes in the order of GPT-2's alphabet, then the tokens of the
/// merges, then `<|endoftext|>`. Each step merges the most frequent pair in the words; ties are
/// broken by the lower left id, then the lower right id. Hugging Face's trainer breaks ties in this
/// way, so the merges are equal. Counts are 64-bit; a pair is counted at each position, overlapping
/// ones too, before it is merged from left to right. `progress` receives the number of tokens so
/// far. Throws Error{usage} for a size below 257.
TokenizerPtr learn_bpe(const WordCounts& counts, const LearnOptions& options,
                       const std::function<void(std::uint64_t)>& progress);

}  // namespace text
