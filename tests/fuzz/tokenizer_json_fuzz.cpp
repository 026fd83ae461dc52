// A tokenizer of any bytes (tokenizer.json and the files of --import) is read or gives an
// Error{bad_data}. A tokenizer that was read encodes, decodes, and is equal after it is written.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "fuzz/target.h"
#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/tokenizer.h"

namespace {

// Encoding in pieces gives the ids of the whole.
void stream(const text::TokenizerPtr& tokenizer, std::string_view text) {
  std::vector<std::uint32_t> whole, pieces;
  tokenizer->encode(text, whole);
  text::StreamEncoder encoder(tokenizer);
  for (std::size_t at = 0; at < text.size(); at += 11) encoder.feed(text.substr(at, 11), pieces);
  encoder.finish(pieces);
  if (whole != pieces) std::abort();
}

void use(const text::TokenizerPtr& tokenizer) {
  const std::string json = tokenizer->json();
  if (core::dump(core::parse_json(json, "json")) != json) std::abort();
  if (text::parse_tokenizer(json, "again")->json() != json) std::abort();
  std::vector<std::uint32_t> ids;
  try {
    tokenizer->encode("The lamp's 42 \xff\n\n  \u00e9nd <unk> <x>e\u0301\u1100\u1161!", ids);
    std::string text;
    for (int i = 0; i < 12; ++i)
      text += "A word's 12 \u4E00\xff\r\n  <x> and\tmore e\u0301 <tool_call> \xE2\x96\x81 ";
    stream(tokenizer, text);
    // Long runs give a bounded result or are refused.
    std::string runs = "x";
    for (const char c : {'a', '1', ' ', 'x'}) runs.append(800, c);
    for (int i = 0; i < 400; ++i) runs += "\u0301\u0323";
    std::vector<std::uint32_t> many;
    tokenizer->encode(runs, many);
    if (many.size() > 5 * text::Normalizer::room_of(runs.size())) std::abort();
  } catch (const core::Error& error) {
    // A pattern may take too many steps, or a normalizer make too much text.
    if (error.code() != core::Code::bad_data) std::abort();
  }
  for (const std::uint32_t id : ids)
    if (id >= tokenizer->size()) std::abort();
  tokenizer->decode(ids);
}

template <class Read> void try_reading(Read read) {
  text::TokenizerPtr tokenizer;
  try {
    tokenizer = read();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return;
  }
  use(tokenizer);
}

}  // namespace

// The first byte says what the rest is. 0xff separates two files.
FUZZ_TARGET(tokenizer_json)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::string all(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t middle = std::min(all.find('\xff'), all.size());
  const text::NamedText one{"one", all.substr(0, middle)};
  const text::NamedText two{"two", all.substr(std::min(middle + 1, all.size()))};
  switch (data[0]) {
    case '2': try_reading([&] { return text::import_gpt2(one, two); }); break;
    case 't': try_reading([&] { return text::import_tiktoken(one); }); break;
    case 'f': try_reading([&] { return text::import_fairseq(one); }); break;
    case 'c':
      try_reading([&] { return text::import_codes(one, middle < all.size() ? &two : nullptr); });
      break;
    default:
      try_reading([&] {
        return text::parse_tokenizer({reinterpret_cast<const char*>(data), size}, "x");
      });
  }
}
