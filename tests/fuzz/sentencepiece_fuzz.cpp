// A tokenizer.model of any bytes gives a tokenizer that its own JSON restores, or an Error.

#include "text/formats/sentencepiece.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "text/formats/tokenizer_json.h"

FUZZ_TARGET(sentencepiece)(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  text::TokenizerPtr tokenizer;
  try {
    tokenizer = text::parse_tokenizer(text::sentencepiece_json(bytes, "x.model"), "x.model");
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return;
  }
  const auto json = tokenizer->json();
  if (text::parse_tokenizer(json, "again")->json() != json) std::abort();
  try {
    for (const auto id :
        tokenizer->encode("Hello  w\xC3\xB6rld \xE2\x96\x81\xE2\x96\x81 12\n\xFF "))
      if (id >= tokenizer->size()) std::abort();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();  // a normalizer that makes too much
  }
}
