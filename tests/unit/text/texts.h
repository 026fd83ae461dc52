#pragma once
// Texts for the tests that are hard to split and not always UTF-8.

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "core/io.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace sample {

inline const std::string kFolder = "tests/golden/tokenizers/";

inline std::string file(const std::string& name) { return core::read_text(kFolder + name); }

inline std::vector<std::uint32_t> ids_in(const std::string& name) {
  std::vector<std::uint32_t> ids;
  const std::string text = file(name);
  for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != text.npos;) {
    std::size_t used = 0;
    ids.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at, 10), &used)));
    at += used;
  }
  return ids;
}

/// Runs of all classes of characters, contractions, white space of all kinds, invalid UTF-8,
/// truncated characters.
inline rc::Gen<std::string> text() {
  static const std::vector<std::string> pieces = {" ", "  ", "\n", "\t", "\r\n", "'", "''", "'s",
      "'re", "'l", "'ll", "the", " the", "a", "Z", "longerwordthanfifteenbytes", "1", "2024", ".",
      "...", "\u00e9", "\u4f60", "\u00a0", "\u3000", "\u2003", "\u0663", "\u00b2", "\U0001F600",
      "\u0301", "\xff", "\xc3", "\xe4\xbd", "\x80", "\xf0\x9f\x98", std::string(1, '\0'),
      "<|endoftext|>", "<unk>", "<eos>", "\x1c"};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)),
      [](const std::vector<std::string>& parts) {
        std::string all;
        for (const auto& part : parts) all += part;
        return all;
      });
}

/// Returns the bytes tokenizer, a learned BPE and a word tokenizer of the sample.
inline text::TokenizerPtr tokenizer(const std::string& name) {
  return text::load_tokenizer(name == "bytes" ? name : kFolder + name + ".json");
}

/// Returns the ids of a text that arrives `piece` bytes at a time.
inline std::vector<std::uint32_t> streamed(
    const text::TokenizerPtr& tokenizer, const std::string& text, std::size_t piece) {
  text::StreamEncoder stream(tokenizer);
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; at < text.size(); at += piece)
    stream.feed(std::string_view(text).substr(at, piece), ids);
  stream.finish(ids);
  return ids;
}

}  // namespace sample
