// Merges and their learning; words and their counts.

#include "text/learn/learn.h"

#include <sstream>

#include "text/tokenizer/byte_level.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Tokens = std::vector<std::uint32_t>;

// The rule as defined: the lowest rank of all pairs, leftmost first.
Tokens merged_plainly(Tokens symbols, const std::vector<text::Merge>& merges) {
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t r = 0; r < best; ++r) {
        if (merges[r].left != symbols[i] || merges[r].right != symbols[i + 1]) continue;
        best = r;
        at = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[at] = merges[best].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
}

text::WordCounts counts_of(const std::map<std::string, std::uint64_t>& words) {
  text::WordCounts counts;
  for (const auto& [word, count] : words) counts.add(word, count);
  return counts;
}

text::TokenizerPtr bpe_of(const std::map<std::string, std::uint64_t>& words, std::size_t size,
    std::uint64_t min_count = 1) {
  return text::learn_bpe(counts_of(words), {size, min_count}, [](std::uint64_t) {});
}

std::vector<std::string> tokens_from(const text::TokenizerPtr& tokenizer, std::uint32_t first) {
  std::vector<std::string> tokens;
  for (std::uint32_t id = first; id < tokenizer->size(); ++id)
    tokens.emplace_back(tokenizer->token(id));
  return tokens;
}

}  // namespace

DOCTEST_TEST_CASE("merging short and long words is merging by the rule") {
  DOCTEST_CHECK(rc::check([] {
    // Random merges of a few symbols, each of which makes a new symbol.
    std::vector<text::Merge> merges;
    const auto n = *rc::gen::inRange<std::uint32_t>(1, 40);
    for (std::uint32_t i = 0; i < n; ++i)
      merges.push_back({*rc::gen::inRange<std::uint32_t>(0, 3 + i),
          *rc::gen::inRange<std::uint32_t>(0, 3 + i), 3 + i});
    std::vector<text::Merge> unique;  // the first of equal pairs
    for (const auto& merge : merges) {
      const bool known = std::any_of(unique.begin(), unique.end(), [&](const text::Merge& other) {
        return other.left == merge.left && other.right == merge.right;
      });
      if (!known) unique.push_back(merge);
    }
    const text::MergeTable table(unique);
    text::MergeTable::Scratch scratch;
    const auto length = *rc::gen::element<std::size_t>(1, 2, 5, 20, 48, 49, 120);
    Tokens symbols = *rc::gen::container<Tokens>(length, rc::gen::inRange<std::uint32_t>(0, 3));
    const Tokens expected = merged_plainly(symbols, unique);
    table.apply(symbols, scratch);
    RC_ASSERT(symbols == expected);
  }));
}

DOCTEST_TEST_CASE("bpe: the merges are those of Hugging Face's trainer") {
  core::MemorySource source(sample::file("sample.txt"));
  const auto reader = text::read_documents(
      {sample::kFolder + "sample.txt"}, {}, text::cut_for(text::WordKind::gpt2));
  const auto counts = text::count_words(*reader, text::WordKind::gpt2, "text", 1, [](auto) {});
  const auto tokenizer = text::learn_bpe(counts, {700, 2}, [](std::uint64_t) {});
  const auto& bpe = dynamic_cast<const text::ByteLevel&>(*tokenizer);
  const auto names = bpe.file_names();
  std::string merges;
  for (const auto& merge : bpe.merges().list())
    merges += names[merge.left] + " " + names[merge.right] + "\n";
  DOCTEST_CHECK(merges == sample::file("bpe.merges"));
  DOCTEST_CHECK(tokenizer->fingerprint() == sample::tokenizer("bpe")->fingerprint());
}

DOCTEST_TEST_CASE("bpe by hand: most frequent first, ties by the lower ids, ids in order") {
  // "ab" 5, "bc" 3 + 2; a tie with b: the lower left id is first.
  const auto tokenizer = bpe_of({{"ab", 5}, {"bcd", 3}, {"bc", 2}}, 260);
  DOCTEST_CHECK(
      tokens_from(tokenizer, 256) == std::vector<std::string>{"ab", "bc", "bcd", "<|endoftext|>"});
  DOCTEST_CHECK(tokenizer->token(0) == "!");
  DOCTEST_CHECK(tokenizer->encode("abbcd") == Tokens{256, 258});
  DOCTEST_CHECK(*tokenizer->end_of_document() == 259);
  // No pair is left: the vocabulary is smaller.
  DOCTEST_CHECK(bpe_of({{"ab", 5}}, 1000)->size() == 258);
  DOCTEST_CHECK(bpe_of({{"ab", 5}, {"cd", 1}}, 1000, 2)->size() == 258);
  DOCTEST_CHECK(bpe_of({{"ab", 5}}, 257)->size() == 257);
  DOCTEST_CHECK(thrown([] { bpe_of({{"ab", 5}}, 256); }).code == 64);
}

DOCTEST_TEST_CASE("bpe: runs of one symbol, counts beyond 32 bits") {
  const auto tokenizer = bpe_of({{"aaaa", 3'000'000'000}, {"bb", 8'999'999'999}}, 262);
  // (a, a) counts 3 in "aaaa", so 9,000,000,000 in all.
  DOCTEST_CHECK(
      tokens_from(tokenizer, 256) == std::vector<std::string>{"aa", "bb", "aaaa", "<|endoftext|>"});
}

DOCTEST_TEST_CASE("bpe: the counts that are kept up to date are those of counting anew") {
  DOCTEST_CHECK(rc::check([] {
    const auto words = *rc::gen::container<std::vector<Tokens>>(
        rc::gen::container<Tokens>(rc::gen::inRange<std::uint32_t>(0, 4)));
    text::BpeLearner learner;
    std::vector<Tokens> now = words;
    for (std::size_t i = 0; i < words.size(); ++i) learner.add(words[i], i % 3 + 1);
    for (std::uint32_t result = 4; result < 20; ++result) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> counts;
      for (std::size_t i = 0; i < now.size(); ++i)
        for (std::size_t j = 0; j + 1 < now[i].size(); ++j)
          counts[{now[i][j], now[i][j + 1]}] += static_cast<std::int64_t>(i % 3 + 1);
      const auto best = learner.best();
      RC_ASSERT(best.has_value() == !counts.empty());
      if (!best) return;
      auto expected = counts.begin();
      for (auto it = counts.begin(); it != counts.end(); ++it)
        if (it->second > expected->second) expected = it;
      RC_ASSERT(best->left == expected->first.first);
      RC_ASSERT(best->right == expected->first.second);
      RC_ASSERT(best->count == expected->second);
      learner.merge(best->left, best->right, result);
      for (auto& word : now)
        for (std::size_t j = 0; j + 1 < word.size(); ++j)
          if (word[j] == best->left && word[j + 1] == best->right) {
            word[j] = result;
            word.erase(word.begin() + static_cast<std::ptrdiff_t>(j + 1));
          }
    }
  }));
}

DOCTEST_TEST_CASE("word: by count, then by bytes; limits; names that are words already") {
  const auto counts =
      counts_of({{"b", 5}, {"a", 5}, {"zz", 9}, {"<unk>", 100}, {"rare", 1}, {"\xff", 50}});
  const auto all = text::learn_words(counts, {});
  DOCTEST_CHECK(
      tokens_from(all, 0) == std::vector<std::string>{"<unk>", "<eos>", "zz", "a", "b", "rare"});
  DOCTEST_CHECK(text::learn_words(counts, {4, 1})->size() == 4);
  DOCTEST_CHECK(text::learn_words(counts, {0, 2})->size() == 5);
  DOCTEST_CHECK(all->encode("\xff b") == Tokens{0, 4});
}
