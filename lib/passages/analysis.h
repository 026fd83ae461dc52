#pragma once
// Analyses English text as Lucene's English analysis does.

#include "core/base.h"

struct sb_stemmer;

namespace passages {

/// An Analyzer splits a text into words, removes a possessive 's, converts to lower case, removes
/// Lucene's English stop words, and stems the rest (Porter 1980, by libstemmer; words of one or two
/// characters are unchanged).
///
/// Word boundaries follow the relevant part of Unicode's annex 29. A word is a run of letters,
/// numbers, combining marks and underscores that contains a letter or number. One of ' . (for
/// letters also :, for numbers also , ;) between two letters or two numbers does not end a word.
/// Each ideograph and each hiragana is a word. A byte that is not UTF-8 ends a word. Not thread
/// safe.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(Analyzer&&) = delete;

  /// Appends the numbers of the terms of `text`, in order. Terms are numbered in order of
  /// appearance. `words` (null: not needed) receives the word of each, which points into `text`.
  void analyze(std::string_view text, std::vector<std::uint32_t>& terms,
      std::vector<std::string_view>* words = nullptr);
  /// Returns the number of distinct terms so far.
  std::size_t size() const { return terms_.size(); }
  const std::string& term(std::uint32_t number) const { return terms_[number]; }

 private:
  std::uint32_t term_of(std::string_view word);
  std::uint32_t look_up(std::string_view word);

  std::unique_ptr<sb_stemmer, void (*)(sb_stemmer*)> stemmer_;
  std::deque<std::string> terms_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // number of each string in terms_
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  // Cache of recent words.
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> words_;
  std::string lower_;
};

}  // namespace passages
