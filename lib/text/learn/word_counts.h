#pragma once
// Counts how often each word occurs in a text, which is all that learning a tokenizer needs.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/documents/documents.h"
#include "text/tokenizer/vocabulary.h"

namespace text {

/// WordCounts maps words to counts. Memory: the distinct words, plus about 40 bytes each.
class WordCounts {
 public:
  void add(std::string_view word, std::uint64_t count = 1) {
    const std::uint32_t id = words_.add(word);
    if (id == counts_.size()) counts_.push_back(0);
    counts_[id] += count;
  }
  void add(const WordCounts& other) {
    for (std::uint32_t i = 0; i < other.size(); ++i) add(other.word(i), other.count(i));
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(counts_.size()); }
  std::string_view word(std::uint32_t i) const { return words_.token(i); }
  std::uint64_t count(std::uint32_t i) const { return counts_[i]; }
  /// Returns the numbers of the words that occur at least `min_count` times, sorted by descending
  /// count, then by bytes. The order does not depend on the order of the words in the text.
  std::vector<std::uint32_t> by_count(std::uint64_t min_count) const;

 private:
  Vocabulary words_;
  std::vector<std::uint64_t> counts_;
};

/// WordKind is the definition of a word.
enum class WordKind {
  plain,  ///< separated by spaces and newlines; newlines are not counted
  gpt2,   ///< GPT-2's pre-tokens
};
/// Returns the function that finds where a text of such words may be cut.
CutFunction cut_for(WordKind kind);

/// Counts the words of all documents in `jobs` threads; `field` and `bad` are as in
/// DocumentOptions. Adds the skipped and mended lines to `flaws` if it is not null.
WordCounts count_words(DocumentReader& reader, WordKind kind, const std::string& field, int jobs,
                       const std::function<void(std::uint64_t)>& progress,
                       BadLines bad = BadLines::error, LineFlaws* flaws = nullptr);

}  // namespace text
