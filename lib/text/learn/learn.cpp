#include "text/learn/learn.h"

#include "core/error.h"
#include "text/learn/bpe_learner.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"

namespace text {

TokenizerPtr learn_words(const WordCounts& counts, const LearnOptions& options) {
  WordLevel::Options names;
  Vocabulary vocabulary;
  vocabulary.add(names.unknown);
  vocabulary.add(names.newline);
  if (options.vocabulary_size == 1)
    core::fail(core::Code::usage, "--vocab-size: {} and {} need 2", names.unknown, names.newline);
  for (const std::uint32_t i : counts.by_count(options.min_count)) {
    if (vocabulary.size() == options.vocabulary_size) break;
    if (is_valid_utf8(counts.word(i))) vocabulary.add(counts.word(i));
  }
  return std::make_shared<WordLevel>(std::move(vocabulary), std::move(names));
}

TokenizerPtr learn_bpe(const WordCounts& counts, const LearnOptions& options,
                       const std::function<void(std::uint64_t)>& progress) {
  constexpr std::string_view kMark = "<|endoftext|>";
  if (options.vocabulary_size != 0 && options.vocabulary_size < 257)
    core::fail(core::Code::usage, "--vocab-size: the bytes and {} need 257", kMark);
  Vocabulary vocabulary;
  std::uint32_t id_of_byte[256];
  for (const std::uint8_t byte : bytes_in_alphabet_order()) {
    const char c = static_cast<char>(byte);
    id_of_byte[byte] = vocabulary.add({&c, 1});
  }
  const std::size_t limit = options.vocabulary_size == 0 ? SIZE_MAX : options.vocabulary_size - 1;

  BpeLearner learner;
  std::vector<std::uint32_t> symbols;
  for (const std::uint32_t i : counts.by_count(1)) {
    symbols.clear();
    for (const char c : counts.word(i))
      symbols.push_back(id_of_byte[static_cast<unsigned char>(c)]);
    learner.add(symbols, counts.count(i));
  }
  std::vector<Merge> merges;
  std::string joint;
  while (vocabulary.size() < limit) {
    const auto best = learner.best();
    if (!best || best->count < static_cast<std::int64_t>(options.min_count)) break;
    joint.assign(vocabulary.token(best->left)).append(vocabulary.token(best->right));
    // Two merges may result in one token.
    const std::uint32_t result = vocabulary.add(joint);
    merges.push_back({best->left, best->right, result});
    learner.merge(best->left, best->right, result);
    progress(vocabulary.size());
  }
  const std::uint32_t mark = vocabulary.add(kMark);
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges),
                                     ByteLevel::Parts{.special = {{mark, std::string(kMark)}}});
}

}  // namespace text
