#pragma once
// English text as search engines see it: what Lucene's English analysis makes of it.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct sb_stemmer;

namespace passages {

/// Cuts a text into words, drops a possessive 's, makes them lower case, drops Lucene's English
/// stop words, and stems the rest (Porter 1980, by libstemmer; words of one or two characters
/// stay).
///
/// Words follow Unicode's annex 29 as far as it matters here: runs of letters, numbers, combining
/// marks and underscores with a letter or number in them; one of ' . (letters: also :, numbers:
/// also , ;) between two letters or two numbers does not end a word; each ideograph and each
/// hiragana is a word. Bytes that are not UTF-8 end a word. Not thread safe.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  /// Appends the number of each term of `text`, in order. Terms are numbered as they appear.
  void analyze(std::string_view text, std::vector<std::uint32_t>& terms);
  /// Terms seen so far.
  std::size_t size() const { return terms_.size(); }
  const std::string& term(std::uint32_t number) const { return terms_[number]; }

 private:
  std::uint32_t term_of(std::string_view word);
  std::uint32_t look_up(std::string_view word);

  std::unique_ptr<sb_stemmer, void (*)(sb_stemmer*)> stemmer_;
  std::deque<std::string> terms_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // of terms_
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> words_;  // seen lately
  std::string lower_;
};

}  // namespace passages
