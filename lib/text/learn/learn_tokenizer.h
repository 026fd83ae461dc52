#pragma once
// From files of text to a learned tokenizer: the work of `tokenize --learn`.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/options.h"
#include "text/documents/documents.h"
#include "text/learn/learn.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

/// What is to be learned, as options say it.
struct LearnRequest {
  std::string kind;  ///< word, bpe; empty: nothing
  std::int64_t vocab_size = 0, min_count = 0;
  void fields(core::FieldList& f);

  /// With what is open filled in: 32768 tokens and pairs seen twice for bpe; all words for word.
  LearnOptions options() const;
};

/// Bytes of the files that were read, then tokens that there are (of bpe).
struct LearnWatch {
  std::function<void(std::uint64_t)> reading, learning;
  std::function<void(const std::string&)> note = {};  ///< what a user should know of the files
};

/// The same whatever `jobs`. Throws as read_documents(), learn_words() and learn_bpe() do.
TokenizerPtr learn_tokenizer(const std::vector<std::string>& files,
                             const DocumentOptions& documents, const LearnRequest& request,
                             int jobs, const LearnWatch& watch);

/// What `train` learns of texts where no tokenizer is given: byte-level BPE with a token for each
/// 250 bytes of the files as they are, in hundreds, 500 at least and 16,000 at most; `watch.note`
/// is told so. JSON lines by the files' names. Throws as learn_tokenizer() does.
TokenizerPtr learn_for_training(const std::vector<std::string>& files, int jobs,
                                const LearnWatch& watch);

/// Why a tokenizer has fewer tokens than were asked for; empty if it has not.
std::string shortfall(const Tokenizer& tokenizer, const LearnRequest& request);

}  // namespace text
