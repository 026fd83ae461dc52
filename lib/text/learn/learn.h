#pragma once
// Learns tokenizers from word counts. Equal counts give equal tokenizers.
// Counts how often each word occurs in a text, which is all that learning a tokenizer needs.
// Learns a tokenizer from text files: the work of `tokenize --learn`.
// Counts the pairs of neighbouring symbols in a set of words and updates the counts with each
// merge, which visits only the words that contain the pair.

#include "core/options.h"
#include "text/documents/documents.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// A BpeLearner holds words as sequences of symbols.
class BpeLearner {
 public:
  /// Adds a word that occurs `count` times in the text.
  void add(std::span<const std::uint32_t> symbols, std::uint64_t count);

  struct Pair {
    std::uint32_t left, right;
    std::int64_t count;
  };
  /// Returns the most frequent pair; ties are broken by the lower left symbol, then the lower
  /// right. Returns nothing if no pair is left. The first call counts all pairs; add() must not
  /// follow it.
  std::optional<Pair> best();

  /// Replaces each pair left, right by `result`, from left to right in every word.
  void merge(std::uint32_t left, std::uint32_t right, std::uint32_t result);

 private:
  struct Word {
    std::uint64_t begin;  // index in symbols_
    std::uint32_t size;
    std::int64_t count;
  };
  struct Entry {
    std::uint64_t pair = 0;
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that contain the pair, or did before a merge
    bool touched = false;              // the entry is in touched_
  };
  struct Candidate {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  void count_all();
  std::uint32_t entry_of(std::uint64_t pair);
  void change(std::uint32_t left, std::uint32_t right, std::int64_t by, std::uint32_t word);
  void grow();

  std::vector<std::uint32_t> symbols_;
  std::vector<Word> words_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;    // entries by hash of their pair, open addressing
  std::vector<Candidate> heap_;         // counts may be outdated, and are then too high
  std::vector<std::uint32_t> touched_;  // entries that grew in this merge
  bool counted_ = false;
};

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
    const std::function<void(std::uint64_t)>& progress, BadLines bad = BadLines::error,
    LineFlaws* flaws = nullptr);

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

/// A LearnRequest holds the flags that say what to learn.
struct LearnRequest {
  std::string kind;  ///< word, bpe; empty: nothing
  std::int64_t vocab_size = 0, min_count = 0;
  void fields(core::FieldList& f);

  /// Returns the options with defaults filled in. bpe: 32768 tokens, and pairs that occur at least
  /// twice; word: all words.
  LearnOptions options() const;
};

/// A LearnCallbacks receives progress: bytes of the files read, then (bpe) the number of tokens.
struct LearnCallbacks {
  std::function<void(std::uint64_t)> reading, learning;
  /// Receives what a user should know about the files.
  std::function<void(const std::string&)> note = {};
};

/// Learns a tokenizer. The result does not depend on `jobs`. Throws as read_documents(),
/// learn_words() and learn_bpe() do.
TokenizerPtr learn_tokenizer(const std::vector<std::string>& files,
    const DocumentOptions& documents, const LearnRequest& request, int jobs,
    const LearnCallbacks& watch);

/// Learns the tokenizer that `train` uses for texts if no tokenizer is given: byte-level BPE. The
/// size of the vocabulary is one token per 250 bytes of the stored files, rounded to hundreds,
/// within 500 to 16,000. Passes a note with the size to `watch.note`. Reads files with names of
/// JSON lines as JSON lines. Throws as learn_tokenizer() does.
TokenizerPtr learn_for_training(
    const std::vector<std::string>& files, int jobs, const LearnCallbacks& watch);

/// Says why a tokenizer has fewer tokens than requested; empty if it has not.
std::string shortfall(const Tokenizer& tokenizer, const LearnRequest& request);

}  // namespace text
