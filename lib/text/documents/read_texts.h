#pragma once
// Texts where shards are asked for: tokenized on the way.

#include <functional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace text {

struct ReadTexts {
  /// The tokenizer of all texts; called once, at the first of them.
  std::function<TokenizerPtr()> tokenizer;
  std::string whose;  ///< whose tokenizer that is, for messages: "the model's"
  int jobs = 0;
  std::function<void(const std::string&)> note;
};

/// From here on shard::Dataset takes texts as `tokenize` does with no options: JSON lines by the
/// file's name, else a file is a document; what is not UTF-8 is an error, also for a tokenizer of
/// bytes. Notes what each became, and, from 100 MB of text on, that a shard saves this work. For a
/// program's start, before any thread. The shard has the bytes that `tokenize` writes.
void read_texts(ReadTexts how);

}  // namespace text
