#pragma once
// Learns a tokenizer from text files: the work of `tokenize --learn`.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/options.h"
#include "text/documents/documents.h"
#include "text/learn/learn.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

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
                             const DocumentOptions& documents, const LearnRequest& request,
                             int jobs, const LearnCallbacks& watch);

/// Learns the tokenizer that `train` uses for texts if no tokenizer is given: byte-level BPE. The
/// size of the vocabulary is one token per 250 bytes of the stored files, rounded to hundreds,
/// within 500 to 16,000. Passes a note with the size to `watch.note`. Reads files with names of
/// JSON lines as JSON lines. Throws as learn_tokenizer() does.
TokenizerPtr learn_for_training(const std::vector<std::string>& files, int jobs,
                                const LearnCallbacks& watch);

/// Says why a tokenizer has fewer tokens than requested; empty if it has not.
std::string shortfall(const Tokenizer& tokenizer, const LearnRequest& request);

}  // namespace text
