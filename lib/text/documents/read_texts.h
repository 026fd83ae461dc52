#pragma once
// Lets programs tokenize text files that are given in place of shards.

#include <functional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace text {

/// ReadTexts says how texts are tokenized.
struct ReadTexts {
  /// Returns the tokenizer of all texts; called once, for the first text.
  std::function<TokenizerPtr()> tokenizer;
  std::string whose;  ///< the owner of the tokenizer, in messages: "the model's"
  int jobs = 0;
  std::function<void(const std::string&)> note;
};

/// Makes shard::Dataset accept texts, which are encoded as `tokenize` without options does: a name
/// may say JSON lines; otherwise a file is a document. Bytes that are not UTF-8 are an error, even
/// for a tokenizer of bytes. The shard equals the output of `tokenize`. Notes the result for each
/// text and, from 100 MB of text on, that a shard saves this work. Call it at program start, before
/// any thread starts.
void read_texts(ReadTexts how);

}  // namespace text
