#pragma once
// How often each word stands in a text: all that learning a tokenizer needs of it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/documents/documents.h"
#include "text/tokenizer/vocabulary.h"

namespace text {

/// Memory: the different words, about 40 bytes more each.
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
  /// Numbers of the words seen at least `min_count` times, the most frequent first, then by bytes:
  /// an order that does not depend on the one in which they came.
  std::vector<std::uint32_t> by_count(std::uint64_t min_count) const;

 private:
  Vocabulary words_;
  std::vector<std::uint64_t> counts_;
};

enum class WordKind {
  plain,  ///< between spaces and newlines; newlines are not counted
  gpt2,   ///< pre-tokens of GPT-2
};
/// Where a text of such words may be cut.
CutFunction cut_for(WordKind kind);

/// Counts the words of all documents, in `jobs` threads; `field` and `bad` as in DocumentOptions.
/// Lines that were left out or mended are added to `flaws`, if it is given.
WordCounts count_words(DocumentReader& reader, WordKind kind, const std::string& field, int jobs,
                       const std::function<void(std::uint64_t)>& progress,
                       BadLines bad = BadLines::error, LineFlaws* flaws = nullptr);

}  // namespace text
