// Imports fairseq's dictionaries, subword-nmt's codes and RWKV's vocabulary.

#include "text/formats/import.h"

#include <queue>

#include "core/io.h"
#include "core/json.h"
#include "core/units.h"
#include "text/formats/tokenizer_json.h"
#include "text/python/python_text.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

// Merges of bytes name each byte by a character of GPT-2's alphabet and have no mark of a word's
// end. subword-nmt marks it, so that only codes too few to hold the end of any word look like them.
bool are_of_bytes(std::string_view text) {
  Lines lines(text, "");
  bool any = false;
  std::string_view line;
  lines.next(line);  // #version
  while (lines.next(line)) {
    const std::size_t space = line.find(' ');
    if (line.empty()) continue;
    if (space == line.npos || line.ends_with(CharUnits::kEndOfWord) ||
        !bytes_of_alphabet(line.substr(0, space)) || !bytes_of_alphabet(line.substr(space + 1)))
      return false;
    any = true;
  }
  return any;
}

// Returns the number at the end of line `n`, from 0; nothing if there is none.
std::optional<std::uint64_t> number_in_line(std::string_view text, int n) {
  Lines lines(text, "");
  std::string_view line;
  for (int i = 0; i <= n; ++i)
    if (!lines.next(line)) return std::nullopt;
  const std::size_t space = line.rfind(' ');
  return space == line.npos ? std::nullopt
                            : core::read_number<std::uint64_t>(line.substr(space + 1));
}

// Names without text in the vocabularies of GPT-2, RoBERTa and BART.
constexpr std::string_view kMarks[] = {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"};

std::vector<SpecialToken> marks_in(const Vocabulary& vocabulary) {
  std::vector<SpecialToken> found;
  for (const std::string_view mark : kMarks)
    if (const auto id = vocabulary.id_of(mark)) found.push_back({*id, std::string(mark)});
  return found;
}

Vocabulary read_gpt2_vocabulary(const NamedText& file) {
  const core::Json json = core::parse_json(file.text, file.name, 4);
  Vocabulary vocabulary;
  vocabulary.reserve(json.size(), file.text.size());
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 2 * json.size() + 65536)
      core::bad_data("{}: token {} has no id below twice the number of tokens", file.name, name);
    const auto bytes = bytes_of_alphabet(name);
    if (!vocabulary.set(value.get<std::uint32_t>(), bytes ? *bytes : name))
      core::bad_data("{}: token {} or its id occurs twice", file.name, name);
  }
  return vocabulary;
}

Vocabulary read_ranks(const NamedText& file) {
  Vocabulary vocabulary;
  Lines lines(file.text, file.name);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    const auto token = space == line.npos ? std::nullopt : of_base64(line.substr(0, space));
    const auto rank = space == line.npos ? std::nullopt
                                         : core::read_number<std::uint64_t>(line.substr(space + 1));
    if (!token || token->empty() || !rank) lines.refuse("not a base64 token and its rank");
    if (*rank >= 2 * file.text.size()) lines.refuse("rank {} is too high", *rank);
    if (!vocabulary.set(static_cast<std::uint32_t>(*rank), *token))
      lines.refuse("a token or a rank that occurs twice");
  }
  return vocabulary;
}

// Returns the two tokens that ranks below `limit` leave of `token`. Like tiktoken, it always merges
// the neighbours whose joint token has the lowest rank. Returns nothing if more than two are left.
std::optional<std::pair<std::uint32_t, std::uint32_t>> last_pair(
    const Vocabulary& vocabulary, std::string_view token, std::uint32_t limit) {
  const std::size_t size = token.size();
  std::vector<std::size_t> end, before;  // of the part that begins here; 0: none does
  for (std::size_t i = 0; i < size; ++i) end.push_back(i + 1), before.push_back(i - 1);
  using Joint = std::tuple<std::uint32_t, std::size_t, std::size_t>;  // rank, begin, end
  std::priority_queue<Joint, std::vector<Joint>, std::greater<>> joints;
  const auto add = [&](std::size_t at) {
    if (end[at] == size) return;
    const std::size_t to = end[end[at]];
    const auto id = vocabulary.id_of(token.substr(at, to - at));
    if (id && *id < limit) joints.emplace(*id, at, to);
  };
  for (std::size_t i = 0; i < size; ++i) add(i);
  std::size_t parts = size;
  while (parts > 2 && !joints.empty()) {
    const auto [rank, at, to] = joints.top();
    joints.pop();
    const std::size_t middle = end[at];
    if (middle == 0 || middle == size || end[middle] != to) continue;  // merged otherwise since
    end[at] = to, end[middle] = 0, --parts;
    if (to < size) before[to] = at;
    if (at > 0) add(before[at]);
    add(at);
  }
  if (parts > 2) return std::nullopt;
  const auto left = vocabulary.id_of(token.substr(0, end[0]));
  const auto right = vocabulary.id_of(token.substr(end[0]));
  if (!left || !right) return std::nullopt;
  return std::pair(*left, *right);
}

// fairseq.data.Dictionary puts these before the lines of its file.
constexpr std::string_view kBegin = "<s>", kPad = "<pad>", kEnd = "</s>", kUnknown = "<unk>";

Vocabulary fairseq_specials() {
  Vocabulary vocabulary;
  for (const std::string_view token : {kBegin, kPad, kEnd, kUnknown}) vocabulary.add(token);
  return vocabulary;
}

// Passes the names of a dict.txt to `take` in order. `take` returns false for a name that it
// already has.
template <class Take> void each_name(const NamedText& file, Take take) {
  Lines lines(file.text, file.name);
  for (std::string_view line; lines.next(line);) {
    constexpr std::string_view kOverwrite = " #fairseq:overwrite";
    const bool overwrite = line.ends_with(kOverwrite);
    if (overwrite) line.remove_suffix(kOverwrite.size());
    const std::size_t space = line.rfind(' ');
    if (space == line.npos || space == 0 ||
        !core::read_number<std::uint64_t>(line.substr(space + 1)))
      lines.refuse("not a word, a space and its count");
    const std::string_view name = line.substr(0, space);
    if (!is_valid_utf8(name)) lines.refuse("not UTF-8");
    if (!take(name) && !overwrite) lines.refuse("{} occurs twice", name);
  }
}

// Adds the characters of one side of a merge, the last one with the mark of a word's end.
void add_characters(std::string_view side, Vocabulary& vocabulary) {
  while (!side.empty()) {
    std::size_t n = decode_char(side.data(), side.data() + side.size()).bytes;
    if (side.substr(n) == CharUnits::kEndOfWord) n = side.size();
    vocabulary.add(side.substr(0, n));
    side.remove_prefix(n);
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

FileKind kind_of(std::string_view text) {
  if (is_json(text)) return FileKind::json;
  if (text.starts_with("GGUF")) return FileKind::gguf;
  if (text.starts_with("1 '\\x00' 1")) return FileKind::world;
  if (text.starts_with("#version")) return are_of_bytes(text) ? FileKind::merges : FileKind::codes;
  if (number_in_line(text, 0) == 0u && number_in_line(text, 1) == 1u) return FileKind::ranks;
  const std::size_t end = text.find('\n');
  const bool counts = end != text.npos && text.substr(0, end).find(' ') != text.npos;
  return counts ? FileKind::counts : FileKind::other;
}

std::string not_a_tokenizer(FileKind kind) {
  switch (kind) {
    case FileKind::merges:
      return "GPT-2's merges without their vocabulary; convert both: tokenize --import "
             "encoder.json vocab.bpe";
    case FileKind::codes: return "subword-nmt's codes; convert them with tokenize --import";
    case FileKind::ranks: return "tiktoken's ranks; convert them with tokenize --import";
    case FileKind::gguf:
      return "a GGUF file of a model; convert it with model import to a folder with tokenizer.json";
    case FileKind::world: return "RWKV's vocabulary; convert it with tokenize --import";
    default:
      return "not a tokenizer; give a tokenizer.json, from tokenize --learn or --import, or the "
             "word bytes";
  }
}

TokenizerPtr import_gpt2(const NamedText& vocabulary_file, const NamedText& merges_file) {
  Vocabulary vocabulary = read_gpt2_vocabulary(vocabulary_file);
  std::vector<Merge> merges;
  Lines lines(merges_file.text, merges_file.name);
  for (std::string_view line; lines.next(line);) {
    if (line.empty() || (lines.number() == 1 && line.substr(0, 8) == "#version")) continue;
    const std::size_t space = line.find(' ');
    const auto left = bytes_of_alphabet(line.substr(0, space));
    const auto right =
        space == line.npos ? std::nullopt : bytes_of_alphabet(line.substr(space + 1));
    if (!left || !right) lines.refuse("not two tokens separated by a space");
    const auto a = vocabulary.id_of(*left), b = vocabulary.id_of(*right),
               c = vocabulary.id_of(*left + *right);
    if (!a || !b || !c) lines.refuse("uses or creates a token that {} lacks", vocabulary_file.name);
    merges.push_back({*a, *b, *c});
  }
  ByteLevel::Parts parts{.special = marks_in(vocabulary)};
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges), std::move(parts));
}

TokenizerPtr import_tiktoken(const NamedText& ranks) {
  Vocabulary vocabulary = read_ranks(ranks);
  if (vocabulary.count() > 60000)
    core::bad_data(
        "{}: {} ranks: "
        "not GPT-2's family (r50k_base, p50k_base), and its pattern is not in the file",
        ranks.name, vocabulary.count());
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    if (!vocabulary.id_of({&c, 1})) core::bad_data("{}: no rank for byte {}", ranks.name, b);
  }
  // The file has only results; a token's merge is the pair that the earlier merges leave.
  std::vector<Merge> merges;
  bool whole_words = false;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.token(id).size() < 2) continue;
    if (const auto pair = last_pair(vocabulary, vocabulary.token(id), id)) {
      merges.push_back({pair->first, pair->second, id});
    } else {
      whole_words = true;
    }
  }
  std::uint32_t free = 0;
  while (vocabulary.has(free)) ++free;
  vocabulary.set(free, kMarks[0]);
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges),
      ByteLevel::Parts{.special = {{free, std::string(kMarks[0])}}, .whole_words = whole_words});
}

TokenizerPtr import_tokenizer(const std::vector<std::string>& paths) {
  constexpr std::size_t kLimit = std::size_t{256} << 20;
  std::vector<NamedText> files;
  std::map<FileKind, const NamedText*> of;
  files.reserve(paths.size());
  for (const auto& path : paths) {
    const std::string text = core::read_text(path, kLimit);
    files.push_back(
        {path == "-" ? "stdin" : path, std::string(core::without_byte_order_mark(text))});
    of[kind_of(files.back().text)] = &files.back();
  }
  const auto has = [&](FileKind kind) { return of.count(kind) > 0; };
  if (files.size() == 1) {
    if (has(FileKind::json)) return parse_tokenizer(files[0].text, files[0].name);
    if (has(FileKind::codes)) return import_codes(files[0], nullptr);
    if (has(FileKind::ranks)) return import_tiktoken(files[0]);
    if (has(FileKind::world)) return import_world(files[0]);
    if (has(FileKind::counts)) return import_fairseq(files[0]);
  } else if (files.size() == 2) {
    // A short file of codes may look like merges. With a vocabulary, either reader reports what is
    // wrong in them.
    for (const FileKind merges : {FileKind::merges, FileKind::codes})
      if (has(FileKind::json) && has(merges)) return import_gpt2(*of[FileKind::json], *of[merges]);
    if (has(FileKind::codes) && has(FileKind::counts))
      return import_codes(*of[FileKind::codes], of[FileKind::counts]);
  }
  if (has(FileKind::merges) && !has(FileKind::json))
    core::bad_data("{}: {}", of[FileKind::merges]->name, not_a_tokenizer(FileKind::merges));
  core::bad_data(
      "{}: none of the files that can be imported: encoder.json and vocab.bpe, .tiktoken ranks, "
      "fairseq's dict.txt, subword-nmt's codes (with or without dict.txt), RWKV's vocabulary",
      files.empty() ? "--import" : files[0].name);
}

TokenizerPtr import_world(const NamedText& file) {
  Vocabulary vocabulary;
  Lines lines(file.text, file.name);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const std::size_t first = line.find(' '), last = line.rfind(' ');
    std::string_view literal = first < last ? line.substr(first + 1, last - first - 1) : "";
    const auto id = core::read_number<std::uint64_t>(line.substr(0, first));
    const auto size = core::read_number<std::uint64_t>(line.substr(last + 1));
    const bool of_bytes = literal.starts_with('b');
    literal.remove_prefix(of_bytes ? 1 : 0);
    if (!id || !size || !(literal.starts_with('\'') || literal.starts_with('"')))
      lines.refuse("not an id, a token as Python writes it, and its number of bytes");
    std::string text, token;
    const auto end =
        python::read_quoted(literal, 0, text, [&](const char* what) { lines.refuse("{}", what); });
    python::each_character(text, [&](std::string_view character, std::uint32_t c) {
      if (of_bytes && c < 256) token += static_cast<char>(c);
      else token += character;
    });
    if (end != literal.size() || token.size() != *size || token.empty())
      lines.refuse("not a token of {} bytes", *size);
    if (*id >= 2 * file.text.size()) lines.refuse("id {} is too high", *id);
    if (!vocabulary.set(static_cast<std::uint32_t>(*id), token))
      lines.refuse("a token or an id that occurs twice");
  }
  // The models end documents with the id 0, which the file leaves out.
  if (!vocabulary.has(0)) vocabulary.set(0, kMarks[0]);
  ByteLevel::Parts parts{
      .special = marks_in(vocabulary), .longest = true, .split = Split(Split::Kind::none)};
  return named(file.name, [&] {
    return std::make_shared<ByteLevel>(
        std::move(vocabulary), std::vector<Merge>{}, std::move(parts));
  });
}

TokenizerPtr import_fairseq(const NamedText& dictionary) {
  Vocabulary vocabulary = fairseq_specials();
  each_name(dictionary, [&](std::string_view name) {
    const std::size_t before = vocabulary.size();
    vocabulary.add(name);
    return vocabulary.size() > before;
  });
  return std::make_shared<WordLevel>(
      std::move(vocabulary), WordLevel::Options{std::string(kUnknown), std::string(kEnd)});
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
  return std::make_shared<CharUnits>(
      std::move(vocabulary), std::move(merges), std::move(special), std::string(kUnknown));
}

}  // namespace text
