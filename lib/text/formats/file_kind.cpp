#include "text/formats/file_kind.h"

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/char_units.h"

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
  return space == line.npos ? std::nullopt : parse_count(line.substr(space + 1));
}

}  // namespace

FileKind kind_of(std::string_view text) {
  if (is_json(text)) return FileKind::json;
  if (text.starts_with("GGUF")) return FileKind::gguf;
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
    default:
      return "not a tokenizer; give a tokenizer.json, from tokenize --learn or --import, or the "
             "word bytes";
  }
}

}  // namespace text
