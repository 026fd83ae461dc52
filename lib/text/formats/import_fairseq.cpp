// Imports fairseq's dictionaries and subword-nmt's codes.

#include "core/error.h"
#include "text/formats/import.h"
#include "text/formats/lines.h"
#include "text/tokenizer/char_units.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

// fairseq.data.Dictionary puts these before the lines of its file.
constexpr std::string_view kBegin = "<s>", kPad = "<pad>", kEnd = "</s>", kUnknown = "<unk>";

Vocabulary fairseq_specials() {
  Vocabulary vocabulary;
  for (const std::string_view token : {kBegin, kPad, kEnd, kUnknown}) vocabulary.add(token);
  return vocabulary;
}

// Passes the names of a dict.txt to `take` in order. `take` returns false for a name that it
// already has.
template <class Take>
void each_name(const NamedText& file, Take take) {
  Lines lines(file.text, file.name);
  for (std::string_view line; lines.next(line);) {
    constexpr std::string_view kOverwrite = " #fairseq:overwrite";
    const bool overwrite = line.ends_with(kOverwrite);
    if (overwrite) line.remove_suffix(kOverwrite.size());
    const std::size_t space = line.rfind(' ');
    if (space == line.npos || space == 0 || !parse_count(line.substr(space + 1)))
      lines.refuse("not a word, a space and its count");
    const std::string_view name = line.substr(0, space);
    if (!is_valid_utf8(name)) lines.refuse("not UTF-8");
    if (!take(name) && !overwrite) lines.refuse("{} occurs twice", name);
  }
}

// Returns the next character of `name`, including an end-of-word mark after it.
std::string_view first_symbol(std::string_view name) {
  const std::size_t n = decode_char(name.data(), name.data() + name.size()).bytes;
  return name.substr(n) == CharUnits::kEndOfWord ? name : name.substr(0, n);
}

// Returns the characters of one side of a merge.
void add_characters(std::string_view side, Vocabulary& vocabulary) {
  while (!side.empty()) {
    const std::string_view symbol = first_symbol(side);
    vocabulary.add(symbol);
    side.remove_prefix(symbol.size());
  }
}

struct Pair {
  std::string left, right;
};

std::vector<Pair> read_codes(const NamedText& file) {
  std::vector<Pair> pairs;
  Lines lines(file.text, file.name);
  for (std::string_view line; lines.next(line);) {
    if (lines.number() == 1) {
      if (line != "#version: 0.2") lines.refuse("codes of version 0.2 begin with `#version: 0.2`");
      continue;
    }
    const std::size_t space = line.find(' ');
    const std::string_view left = line.substr(0, space);
    const std::string_view right = space == line.npos ? "" : line.substr(space + 1);
    if (left.empty() || right.empty() || right.find(' ') != right.npos || !is_valid_utf8(line))
      lines.refuse("not two units separated by a space");
    pairs.push_back({std::string(left), std::string(right)});
  }
  return pairs;
}

}  // namespace

TokenizerPtr import_fairseq(const NamedText& dictionary) {
  Vocabulary vocabulary = fairseq_specials();
  each_name(dictionary, [&](std::string_view name) {
    const std::size_t before = vocabulary.size();
    vocabulary.add(name);
    return vocabulary.size() > before;
  });
  return std::make_shared<WordLevel>(std::move(vocabulary),
                                     WordLevel::Options{std::string(kUnknown), std::string(kEnd)});
}

TokenizerPtr import_codes(const NamedText& codes, const NamedText* dictionary) {
  Vocabulary vocabulary = fairseq_specials();
  if (dictionary != nullptr) {
    each_name(*dictionary, [&](std::string_view name) {
      // subword-nmt writes @@ after a unit that does not end a word.
      const std::string unit = name.ends_with("@@") ? std::string(name.substr(0, name.size() - 2))
                                                    : std::string(name) + "</w>";
      const std::size_t before = vocabulary.size();
      if (!unit.empty()) vocabulary.add(unit);
      return vocabulary.size() > before;
    });
  }
  const std::vector<Pair> pairs = read_codes(codes);
  for (const Pair& pair : pairs) {
    add_characters(pair.left, vocabulary);
    add_characters(pair.right, vocabulary);
  }
  // A character that begins words may also end one.
  if (dictionary == nullptr) {
    for (std::uint32_t id = 4, n = static_cast<std::uint32_t>(vocabulary.size()); id < n; ++id) {
      const std::string name(vocabulary.token(id));
      vocabulary.add(name.ends_with("</w>") ? name.substr(0, name.size() - 4) : name + "</w>");
    }
  }
  std::vector<Merge> merges;
  for (const Pair& pair : pairs) {
    const std::uint32_t left = vocabulary.add(pair.left), right = vocabulary.add(pair.right);
    merges.push_back({left, right, vocabulary.add(pair.left + pair.right)});
  }
  std::vector<SpecialToken> special;
  for (const std::string_view token : {kBegin, kPad, kEnd, kUnknown})
    special.push_back({*vocabulary.id_of(token), std::string(token)});
  return std::make_shared<CharUnits>(std::move(vocabulary), std::move(merges), std::move(special),
                                     std::string(kUnknown));
}

}  // namespace text
