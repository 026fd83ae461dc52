// tokenizer.model with symbols: ids and texts compared with those of sentencepiece and transformers
// (tests/golden/tokenizers/sentencepiece_peer.py wrote them).

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "core/rng.h"
#include "shard/unpacked_source.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/special_text.h"
#include "unit/temporary_folder.h"

namespace {

using PieceIds = std::vector<std::uint32_t>;

const core::Json& piece_peers() {
  static const core::Json peers = [] {
    const auto source = shard::open_unpacked("tests/golden/tokenizers/sentencepiece_peer.json.zst");
    std::string text(std::size_t{1} << 24, '\0');
    text.resize(core::read_fully(*source, std::as_writable_bytes(std::span(text))));
    return core::Json::parse(text);
  }();
  return peers;
}

std::string piece_bytes(const std::string& name) {
  const auto hex = piece_peers()["models"][name]["model"].get<std::string>();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

void expect_ids(const text::Tokenizer& tokenizer, const core::Json& ids) {
  const auto& texts = piece_peers()["texts"];
  const auto encoder = tokenizer.encoder();
  DOCTEST_REQUIRE(ids.size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    DOCTEST_CAPTURE(texts[i].dump());
    PieceIds found;
    encoder->encode(texts[i].get_ref<const std::string&>(), found);
    if (!ids[i].is_null()) DOCTEST_CHECK(core::Json(found).dump() == ids[i].dump());
  }
}

}  // namespace

DOCTEST_TEST_CASE("a tokenizer.model with symbols gives sentencepiece's ids and texts") {
  const TemporaryFolder folder;
  for (const auto& [name, peer] : piece_peers()["models"].items()) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = text::load_tokenizer(folder.file("x.model", piece_bytes(name)));
    expect_ids(*tokenizer, peer["ids"]);
    expect_ids(*text::parse_tokenizer(tokenizer->json(), "again"), peer["ids"]);
    for (std::size_t i = 0; i < peer["ids"].size(); ++i)
      DOCTEST_CHECK(tokenizer->decode(peer["ids"][i].get<PieceIds>()) ==
                    peer["texts"][i].get_ref<const std::string&>());
  }
}

DOCTEST_TEST_CASE("a folder's tokenizer.model with added tokens gives transformers' ids") {
  const TemporaryFolder folder;
  for (const auto& [name, peer] : piece_peers()["folders"].items()) {
    DOCTEST_CAPTURE(name);
    folder.file(name + "/tokenizer.model", piece_bytes(peer["model"]));
    folder.file(name + "/tokenizer_config.json", peer["config"].dump());
    if (peer.contains("added")) folder.file(name + "/added_tokens.json", peer["added"].dump());
    const auto tokenizer = text::load_tokenizer(folder / name);
    expect_ids(*tokenizer, peer["ids"]);
    expect_ids(*tokenizer->parsing_special(), peer["special"]);
    const auto again = text::parse_tokenizer(tokenizer->json(), "again");
    DOCTEST_CHECK(again->json() == tokenizer->json());
    expect_ids(*again->parsing_special(), peer["special"]);
  }
}

DOCTEST_TEST_CASE("a long text has the same ids however it comes in pieces, with symbols") {
  const TemporaryFolder folder;
  core::Rng rng(3);
  const auto texts = piece_peers()["texts"].get<std::vector<std::string>>();
  std::string text;
  while (text.size() < 900'000) text += texts[rng.below(texts.size())] + "\n";
  for (const auto& [name, peer] : piece_peers()["models"].items()) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = text::load_tokenizer(folder.file("x.model", piece_bytes(name)));
    text::StreamEncoder stream(tokenizer);
    PieceIds ids;
    for (std::size_t at = 0; at < text.size();) {
      const auto n = std::min<std::size_t>(1 + rng.below(50'000), text.size() - at);
      stream.feed(std::string_view(text).substr(at, n), ids);
      at += n;
    }
    DOCTEST_CHECK(!ids.empty());  // some positions allow a cut
    stream.finish(ids);
    DOCTEST_CHECK(ids == tokenizer->encode(text));
  }
}
