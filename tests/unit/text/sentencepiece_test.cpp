// tokenizer.model of sentencepiece: ids compared with those of sentencepiece
// (tests/golden/sentencepiece/ make.py wrote them), the unigram model compared with a search of all
// segmentations, and damaged files.

#include "text/formats/sentencepiece.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "core/file_text.h"
#include "core/io.h"
#include "core/json.h"
#include "core/rng.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/special_text.h"
#include "text/tokenizer/unigram.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

namespace {

const std::string kModels = "tests/golden/sentencepiece/";
const char* const kPieceModels[] = {"bpe", "unigram", "unigram_bytes"};

std::string model_bytes(const std::string& name) {
  return core::read_file(kModels + name + ".model", std::size_t{1} << 20);
}

/// A protobuf message, built by hand.
std::string field(int number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} +
         std::string(bytes);
}
std::string field(int number, int value) {
  std::string bytes;
  for (unsigned tag = static_cast<unsigned>(number) << 3; tag > 0 || bytes.empty(); tag >>= 7)
    bytes += static_cast<char>((tag & 127) | (tag > 127 ? 128 : 0));
  return bytes + static_cast<char>(value);
}

}  // namespace

DOCTEST_TEST_CASE("a tokenizer.model gives the ids that sentencepiece gives") {
  const auto golden = core::read_json(kModels + "ids.json");
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const std::string name : kPieceModels) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = text::load_tokenizer(kModels + name + ".model");
    const auto again = text::parse_tokenizer(tokenizer->json(), "again");
    DOCTEST_CHECK(again->json() == tokenizer->json());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      DOCTEST_CAPTURE(texts[i]);
      const auto expected = golden[name][i].get<std::vector<std::uint32_t>>();
      DOCTEST_CHECK(tokenizer->encode(texts[i]) == expected);
      DOCTEST_CHECK(again->encode(texts[i]) == expected);
    }
  }
}

DOCTEST_TEST_CASE(
    "scores beside which sums round give sentencepiece's ids, words in the cache or not") {
  const auto peer = core::read_json(kModels + "coarse.json");
  for (const auto& model : peer["models"]) {
    const auto hex = model["model"].get<std::string>();
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const auto tokenizer = text::parse_tokenizer(text::sentencepiece_json(bytes, "x.model"), "x");
    const auto cached = tokenizer->encoder();
    std::vector<std::uint32_t> ids;
    for (int i = 0; i < 200; ++i) cached->encode(peer["words"].get<std::string>(), ids);
    for (std::size_t i = 0; i < peer["texts"].size(); ++i) {
      const auto text = peer["texts"][i].get<std::string>();
      DOCTEST_CAPTURE(text);
      ids.clear();
      cached->encode(text, ids);
      DOCTEST_CHECK(ids == model["ids"][i].get<std::vector<std::uint32_t>>());
      DOCTEST_CHECK(tokenizer->encode(text) == ids);
    }
  }
}

DOCTEST_TEST_CASE("a text of any size has the same ids however it comes in pieces") {
  std::string text;
  core::Rng rng(4);
  const std::string sample = core::read_text("tests/golden/tokenizers/sample.txt");
  while (text.size() < 300'000) {
    const auto from = rng.below(sample.size() - 40);
    text += sample.substr(from, rng.below(40));
    if (rng.below(30) == 0) text += "  \xE4\xBD\xA0\xE5\xA5\xBD  ";
  }
  for (const std::string name : kPieceModels) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = text::load_tokenizer(kModels + name + ".model");
    const auto whole = tokenizer->encode(text);
    text::StreamEncoder stream(tokenizer);
    std::vector<std::uint32_t> ids;
    for (std::size_t at = 0; at < text.size();) {
      const auto n = std::min<std::size_t>(1 + rng.below(5000), text.size() - at);
      stream.feed(std::string_view(text).substr(at, n), ids);
      at += n;
    }
    stream.finish(ids);
    DOCTEST_CHECK(ids == whole);
    if (name == "unigram_bytes") DOCTEST_CHECK(tokenizer->decode(ids) == text);
  }
}

DOCTEST_TEST_CASE("a unigram model takes the best of all ways to cut a text") {
  text::Vocabulary vocabulary;
  text::Unigram::Parts parts;
  core::Rng rng(9);
  const std::vector<std::string> pieces = {"<unk>", "a", "b", "c", "ab", "bc", "abc", "ca", "aa",
      "bca", "aabb",
      "\xC3\xA9"
      "a"};
  for (std::uint32_t id = 0; id < pieces.size(); ++id) {
    vocabulary.set(id, pieces[id]);
    parts.scores.push_back(id == 0 ? 0 : -1 - 5 * rng.uniform());
  }
  const text::Unigram unigram(std::move(vocabulary), parts);
  const double least = *std::min_element(parts.scores.begin(), parts.scores.end());
  const auto score_of = [&](std::string_view piece, bool one_char) -> double {
    for (std::size_t id = 1; id < pieces.size(); ++id)
      if (pieces[id] == piece) return parts.scores[id];
    return one_char ? least - text::Unigram::kUnknown : -INFINITY;
  };
  for (int time = 0; time < 200; ++time) {
    std::string text;
    std::vector<std::size_t> borders = {0};
    for (std::uint64_t n = 1 + rng.below(9); n > 0; --n) {
      const char* const chars[] = {"a", "b", "c", "\xC3\xA9", "d"};
      text += chars[rng.below(5)];
      borders.push_back(text.size());
    }
    DOCTEST_CAPTURE(text);
    // All segmentations, one bit for each inner border.
    double best = -INFINITY;
    for (std::uint32_t way = 0; way < 1U << (borders.size() - 2); ++way) {
      double sum = 0;
      std::size_t from = 0;
      for (std::size_t i = 1; i < borders.size(); ++i) {
        if (i + 1 < borders.size() && (way >> (i - 1) & 1) == 0) continue;
        sum += score_of(text.substr(borders[from], borders[i] - borders[from]), i == from + 1);
        from = i;
      }
      best = std::max(best, sum);
    }
    double found = 0;
    std::size_t at = 0;
    for (const auto id : unigram.encode(text)) {
      if (id != 0) {
        found += parts.scores[id];
        DOCTEST_REQUIRE(text.substr(at, pieces[id].size()) == pieces[id]);
        at += pieces[id].size();
        continue;
      }
      // Adjacent unknown characters are one token.
      do {
        found += least - text::Unigram::kUnknown;
        at += (text[at] & 0x80) != 0 ? 2 : 1;
      } while (at < text.size() && (text[at] == 'd' || text.substr(at, 2) == "\xC3\xA9") &&
               text.substr(at, 3) !=
                   "\xC3\xA9"
                   "a");
    }
    DOCTEST_CHECK(at == text.size());
    DOCTEST_CHECK(found == doctest::Approx(best));
  }
}

DOCTEST_TEST_CASE(
    "a folder's tokenizer.model is its tokenizer, with what tokenizer_config.json adds") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "m");
  std::filesystem::copy_file(kModels + "bpe.model", folder / "m/tokenizer.model");
  const auto plain = text::load_tokenizer(folder / "m");
  DOCTEST_CHECK(plain->text_template().begin.empty());
  folder.file("m/tokenizer_config.json",
      R"({"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {
          "1": {"content": "<s>", "special": true}, "500": {"content": "<|im_end|>", "special": true}}})");
  const auto added = text::load_tokenizer(folder / "m");
  DOCTEST_CHECK(added->text_template().begin == std::vector<std::uint32_t>{1});
  DOCTEST_CHECK(added->token(500) == "<|im_end|>");
  DOCTEST_CHECK(added->parsing_special()->encode("x<|im_end|>").back() == 500);
  folder.file("m/tokenizer_config.json",
      R"({"added_tokens_decoder": {"1": {"content": "<other>", "special": true}}})");
  DOCTEST_CHECK(thrown([&] { text::load_tokenizer(folder / "m"); }).names("piece 1 is <s>"));
  folder.file("m/tokenizer_config.json", "{}");
  folder.file("m/added_tokens.json", R"({"<pad>": 500, "<x>": "501"})");
  DOCTEST_CHECK(thrown([&] { text::load_tokenizer(folder / "m"); }).names("is not a token"));
  folder.file("bert/vocab.txt", "[PAD]\n[UNK]\n");
  DOCTEST_CHECK(thrown([&] { text::load_tokenizer(folder / "bert"); }).names("WordPiece"));
}

DOCTEST_TEST_CASE("a tokenizer.model that is damaged or of another kind is refused") {
  const auto fault = [](const std::string& bytes) {
    const auto error = thrown(
        [&] { text::parse_tokenizer(text::sentencepiece_json(bytes, "x.model"), "x.model"); });
    DOCTEST_CHECK((error.code == 0 || error.code == 65));
    return error.text;
  };
  const auto names = [&](const std::string& bytes, std::string_view part) {
    DOCTEST_CHECK_MESSAGE(fault(bytes).find(part) != std::string::npos, fault(bytes));
  };
  const auto piece = [](std::string_view text, int type) {
    return field(1, field(1, text) + field(3, type));
  };
  const std::string unknown = piece("<unk>", 2);
  // sentencepiece makes these pieces of characters that are none, or control pieces.
  const std::string bpe = unknown + piece("a", 1) + field(2, field(3, 2));
  for (const char* text : {"ab", "ba", "bb", "aab"})
    names(bpe + piece("aa", 1) + piece(text, 1), "made of a character that is not a token");
  names(bpe + piece("ab", 1) + piece("b", 3), "x.model: token 2 is made of a character");
  // It merges no symbols, and cannot make these.
  DOCTEST_CHECK(fault(bpe + piece("ab", 1) + piece("b", 4)).empty());
  DOCTEST_CHECK(fault(bpe + piece("bcd", 1)).empty());
  names(unknown + field(2, field(3, 3)), "words (model_type WORD)");
  names(unknown + field(2, field(3, 4)), "characters (model_type CHAR)");
  names(unknown + field(2, field(24, 1)), "treat_whitespace_as_suffix");
  names(unknown + field(3, field(5, 0)), "escape_whitespaces");
  names(unknown + field(2, field(35, 1)), "the 256 bytes");
  names(unknown + piece("a", 7), "unknown type");
  names(unknown + piece("\xFF", 1), "not UTF-8");
  names(piece("a", 1), "no unknown piece");
  names("", "no pieces");
  names(unknown + "\x0A\x7F", "cut short");
  names(unknown + field(3, field(2, "\x05")), "precompiled_charsmap");
  // Any other contents are read or refused.
  for (const std::string name : kPieceModels) {
    const auto bytes = model_bytes(name);
    for (std::size_t n = 0; n < bytes.size(); n += 97) fault(bytes.substr(0, n));
    for (std::size_t i = 0; i < bytes.size(); i += 61) {
      auto changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0x24);
      fault(changed);
    }
  }
}
