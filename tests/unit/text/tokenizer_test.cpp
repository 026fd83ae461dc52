// Tokenizers: ids equal to other programs', exact decoding, streams, tokenizer.json.

#include "text/tokenizer/tokenizer.h"
#include "text/formats/tokenizer_json.h"

#include "core/json.h"
#include "text/formats/import.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/word_level.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Ids = std::vector<std::uint32_t>;

// A tokenizer.json with one value changed, by JSON pointer.
std::string changed(const std::string& name, const std::string& pointer, const core::Json& value) {
  core::Json json = core::parse_json(sample::file(name + ".json"), name);
  json[core::Json::json_pointer(pointer)] = value;
  return core::dump(json);
}

Thrown refused(const std::string& json) {
  return thrown([&] { text::parse_tokenizer(json, "x.json"); });
}

}  // namespace

DOCTEST_TEST_CASE("ids are those of Hugging Face's tokenizers for the same tokenizer.json") {
  for (const std::string name : {"bpe", "word"}) {
    const auto tokenizer = sample::tokenizer(name);
    for (const std::string text : {"sample", "hard"})
      DOCTEST_CHECK(tokenizer->encode(sample::file(text + ".txt")) ==
                    sample::ids_in(text + "." + name + ".ids"));
  }
}

DOCTEST_TEST_CASE("bytes and bpe give any bytes back") {
  for (const std::string name : {"bytes", "bpe"}) {
    const auto tokenizer = sample::tokenizer(name);
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *sample::text();
      RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == text);
    }));
    DOCTEST_CHECK(rc::check([&](const std::string& text) {
      RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == text);
    }));
  }
  const auto bytes = sample::tokenizer("bytes");
  DOCTEST_CHECK(bytes->encode("a\xff") == Ids{0x61, 0xff});
  DOCTEST_CHECK(bytes->size() == 256);
}

DOCTEST_TEST_CASE("a stream of pieces gives the ids of the whole text") {
  for (const std::string name : {"bytes", "bpe", "word"}) {
    const auto tokenizer = sample::tokenizer(name);
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *sample::text();
      text::StreamEncoder stream(tokenizer);
      Ids ids;
      for (int again = 0; again < 2; ++again) {
        for (std::size_t at = 0; at < text.size();) {
          const auto n = *rc::gen::inRange<std::size_t>(1, 20);
          stream.feed(std::string_view(text).substr(at, n), ids);
          at += n;
        }
        stream.finish(ids);
      }
      Ids expected = tokenizer->encode(text), once = expected;
      expected.insert(expected.end(), once.begin(), once.end());
      RC_ASSERT(ids == expected);
    }));
  }
}

DOCTEST_TEST_CASE("a megabyte of one character, whole and in a stream") {
  const auto tokenizer = sample::tokenizer("bpe");
  for (const std::string unit : {"a", " ", "7", "\U0001F600", "\xff", "\n", "ab1"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    const Ids ids = tokenizer->encode(text);
    DOCTEST_CHECK(tokenizer->decode(ids) == text);
    text::StreamEncoder stream(tokenizer);
    Ids streamed;
    for (std::size_t at = 0; at < text.size(); at += 1000)
      stream.feed(std::string_view(text).substr(at, 1000), streamed);
    stream.finish(streamed);
    DOCTEST_CHECK(streamed == ids);
  }
}

DOCTEST_TEST_CASE("a word longer than all limits streams as it encodes") {
  const std::string text = "x " + std::string(9 << 20, 'q') + " y";
  for (const std::string name : {"bpe", "word"}) {
    const auto tokenizer = sample::tokenizer(name);
    text::StreamEncoder stream(tokenizer);
    Ids streamed;
    for (std::size_t at = 0; at < text.size(); at += 100000)
      stream.feed(std::string_view(text).substr(at, 100000), streamed);
    stream.finish(streamed);
    DOCTEST_CHECK(streamed == tokenizer->encode(text));
  }
}

DOCTEST_TEST_CASE("an encoder that remembers words gives the ids of one that does not") {
  const auto tokenizer = sample::tokenizer("bpe");
  std::string text;
  while (text.size() < 200000) text += sample::file("sample.txt") + sample::file("hard.txt");
  const auto encoder = tokenizer->encoder();
  Ids remembered, fresh;
  encoder->encode(text, remembered);
  for (std::size_t at = 0; at < text.size(); at += 7555) {
    remembered.clear();
    encoder->encode(text.substr(at, 7555), remembered);
    DOCTEST_CHECK(remembered == tokenizer->encode(text.substr(at, 7555)));
  }
}

DOCTEST_TEST_CASE("word: spaces vanish, a newline is a token, special names are words") {
  const auto tokenizer = sample::tokenizer("word");
  const auto unknown = *tokenizer->id_of("<unk>"), newline = *tokenizer->id_of("<eos>");
  DOCTEST_CHECK(unknown == 0);
  DOCTEST_CHECK(newline == 1);
  const auto don_t = *tokenizer->id_of("don't");
  DOCTEST_CHECK(tokenizer->encode("  don't \n\n nowhere-seen <eos>") ==
                Ids{don_t, newline, newline, unknown, newline});
  DOCTEST_CHECK(tokenizer->decode(Ids{don_t, don_t, newline, unknown}) == "don't don't\n<unk>");
  DOCTEST_CHECK(!tokenizer->end_of_document());
}

DOCTEST_TEST_CASE("canonical JSON: what core::dump writes, the same after reading it again") {
  for (const std::string name : {"bytes", "bpe", "word"}) {
    const std::string json = sample::tokenizer(name)->json();
    DOCTEST_CHECK(core::dump(core::parse_json(json, name)) == json);
    DOCTEST_CHECK(text::parse_tokenizer(json, name)->json() == json);
    // Another order of keys and other white space give an equal tokenizer.
    const auto pretty = core::dump_pretty(core::OrderedJson::parse(json));
    DOCTEST_CHECK(text::parse_tokenizer(pretty, name)->fingerprint() ==
                  text::parse_tokenizer(json, name)->fingerprint());
  }
}

DOCTEST_TEST_CASE("tokens that JSON must escape come back") {
  std::string text = "\"quoted\" back\\slash \x01\x1f\x7f tab\there\n";
  text::Vocabulary vocabulary;
  for (const char* token :
      {"<unk>", "<eos>", "\"quoted\"", "back\\slash", "\x01\x1f\x7f", "tab\there", "{", "["})
    vocabulary.add(token);
  const text::WordLevel tokenizer(std::move(vocabulary), {});
  const auto again = text::parse_tokenizer(tokenizer.json(), "x");
  DOCTEST_CHECK(again->json() == tokenizer.json());
  DOCTEST_CHECK(again->encode(text) == Ids{2, 3, 4, 5, 1});
}

DOCTEST_TEST_CASE("GPT-2's tokenizer.json as older programs wrote it is read") {
  // No types, merges as pairs or strings, empty strings for absent values, a post-processor.
  core::Json json = core::parse_json(sample::file("bpe.json"), "bpe");
  auto& model = json["model"];
  model.erase("type");
  model.erase("byte_fallback");
  model.erase("ignore_merges");
  model["continuing_subword_prefix"] = "";
  model["end_of_word_suffix"] = "";
  for (auto& merge : model["merges"]) {
    const auto pair = merge.get<std::string>();
    merge = {pair.substr(0, pair.find(' ')), pair.substr(pair.find(' ') + 1)};
  }
  json["pre_tokenizer"].erase("use_regex");
  json["post_processor"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};
  json.erase("decoder");
  json["added_tokens"][0]["normalized"] = true;
  const auto tokenizer = text::parse_tokenizer(core::dump(json), "old.json");
  DOCTEST_CHECK(tokenizer->fingerprint() == sample::tokenizer("bpe")->fingerprint());
  DOCTEST_CHECK(tokenizer->token(*tokenizer->end_of_document()) == "<|endoftext|>");

  // The pattern as a separate step, and a token that is only in added_tokens.
  json["pre_tokenizer"] = core::Json::parse(R"({"type":"Sequence","pretokenizers":[
      {"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":
       "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"}},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})");
  model["vocab"].erase("<|endoftext|>");
  DOCTEST_CHECK(text::parse_tokenizer(core::dump(json), "split.json")->fingerprint() ==
                tokenizer->fingerprint());
}

DOCTEST_TEST_CASE("whole words before merges, if the file says so") {
  auto json = core::parse_json(changed("bpe", "/model/ignore_merges", true), "bpe");
  json["model"]["vocab"]["unreachable"] = 408;
  const auto tokenizer = text::parse_tokenizer(core::dump(json), "x");
  DOCTEST_CHECK(tokenizer->encode("unreachable") == Ids{408});
  DOCTEST_CHECK(sample::tokenizer("bpe")->encode("unreachable").size() > 1);
  DOCTEST_CHECK(text::parse_tokenizer(tokenizer->json(), "y")->json() == tokenizer->json());
}

DOCTEST_TEST_CASE("bytes that a vocabulary lacks are dropped, as Hugging Face's tokenizers do") {
  const auto tokenizer = text::parse_tokenizer(
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},
          "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}})",
      "x");
  DOCTEST_CHECK(tokenizer->encode("a!b ab") == Ids{0, 1, 2});
  DOCTEST_CHECK(tokenizer->encode("axb") == Ids{2});
}

DOCTEST_TEST_CASE("a WordLevel model split at white space is read") {
  const auto tokenizer = text::parse_tokenizer(
      R"({"model":{"type":"WordLevel","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1}},
          "pre_tokenizer":{"type":"WhitespaceSplit"}})",
      "x");
  DOCTEST_CHECK(tokenizer->encode("a\n b\u3000\ta") == Ids{1, 0, 1});
  DOCTEST_CHECK(text::parse_tokenizer(tokenizer->json(), "y")->json() == tokenizer->json());
}

DOCTEST_TEST_CASE("a byte order mark and numbers of any size in unused members are passed over") {
  const std::string model = R"("model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}},)"
                            R"("pre_tokenizer":{"type":"WhitespaceSplit"})";
  const auto plain = text::parse_tokenizer("{" + model + "}", "x")->json();
  const std::string more = "\xEF\xBB\xBF{\"x\":[1e999,18446744073709551616]," + model + "}";
  DOCTEST_CHECK(text::parse_tokenizer(more, "x")->json() == plain);
  DOCTEST_CHECK(refused("{\"x\":NaN," + model + "}").names("NaN is not JSON, though"));
}

DOCTEST_TEST_CASE("what is not supported is named") {
  const auto names = [](const Thrown& error, std::string_view part) {
    return error.code == 65 && error.text.starts_with("x.json: ") && error.names(part);
  };
  DOCTEST_CHECK(names(refused("{"), "not JSON"));
  DOCTEST_CHECK(names(refused("{\"version\":\"1.0\"}"), "no \"model\""));
  DOCTEST_CHECK(
      names(refused("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"), "nested"));
  DOCTEST_CHECK(
      names(refused(changed("bpe", "/model/type", "Unigram")), "Unigram with a pre-tokenizer"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/type", "Morphs")), "model Morphs"));
  DOCTEST_CHECK(
      names(refused(changed("bpe", "/model/type", "WordPiece")), "WordPiece is supported"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/normalizer", {{"type", "Strip"}})), "Strip"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/pre_tokenizer/type", "Whitespace")), "Whitespace"));
  DOCTEST_CHECK(
      names(refused(changed("bpe", "/pre_tokenizer/add_prefix_space", true)), "add_prefix_space"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/pre_tokenizer/use_regex", false)), "use_regex"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/dropout", 0.1)), "dropout"));
  DOCTEST_CHECK(
      names(refused(changed("bpe", "/model/end_of_word_suffix", "</w>")), "end_of_word_suffix"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/merges/0", "Q Q")), "merge 0"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/merges/1", "QQ")), "merge 1"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/merges/2", 7)), "merge 2"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/merges", core::Json())), "\"merges\""));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab", 1)), "\"vocab\""));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab/a", -1)), "id"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab/a", 4000000000u)), "id"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab/a", 2000000u)), "id 2000000"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab/a", 2)), "twice"));
  DOCTEST_CHECK(names(refused(changed("bpe", "/model/vocab/\u4f60", 409)), "alphabet"));
  DOCTEST_CHECK(names(refused(changed("word", "/model/unk_token", "absent")), "absent"));
  DOCTEST_CHECK(names(refused(changed("word", "/normalizer", core::Json())), "normalizer"));
  DOCTEST_CHECK(names(refused(changed("word", "/pre_tokenizer/type", "Whitespace")), "Whitespace"));
}

DOCTEST_TEST_CASE("what belongs elsewhere is named, with the command that takes it") {
  const auto names = [](const std::string& text, std::string_view what, std::string_view command) {
    const auto error = refused(text);
    return error.code == 65 && error.names(what) && error.names(command);
  };
  // Words that are keys of a tokenizer.json are tokens of GPT-2's.
  DOCTEST_CHECK(names(R"({"padding":9,"model":1,"\u0120the":0})", "GPT-2's vocabulary",
      "--import encoder.json vocab.bpe"));
  DOCTEST_CHECK(
      names("#version: 0.2\n\u0120 t\nh e\n", "GPT-2's merges", "--import encoder.json vocab.bpe"));
  DOCTEST_CHECK(names("#version: 0.2\nl o\nlo w</w>\n", "subword-nmt's codes", "--import"));
  DOCTEST_CHECK(names("IQ== 0\nIg== 1\n", "tiktoken's ranks", "--import"));
  for (const std::string text : {"One day\nin May.\n", "", "x", "[1]", "\x28\xb5\x2f\xfd"})
    DOCTEST_CHECK(names(text, "not a tokenizer", "--learn"));
}

DOCTEST_TEST_CASE("an id outside the vocabulary is an error, not a crash") {
  for (const std::string name : {"bytes", "bpe", "word"}) {
    const auto tokenizer = sample::tokenizer(name);
    const auto id = static_cast<std::uint32_t>(tokenizer->size());
    const auto error = thrown([&] { tokenizer->decode(Ids{id}); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(std::to_string(id)));
    DOCTEST_CHECK(tokenizer->token(id).empty());
  }
}

DOCTEST_TEST_CASE("import: GPT-2's two files, and the same out of tiktoken's ranks") {
  const auto bpe = std::dynamic_pointer_cast<const text::ByteLevel>(sample::tokenizer("bpe"));
  DOCTEST_REQUIRE(bpe != nullptr);
  const auto file_names = bpe->file_names();
  core::Json names;
  std::string merges = "#version: 0.2\n", ranks;
  for (std::uint32_t id = 0; id < bpe->size(); ++id) names[file_names[id]] = id;
  for (const auto& merge : bpe->merges().list())
    merges += file_names[merge.left] + " " + file_names[merge.right] + "\n";
  const auto imported =
      text::import_gpt2({"encoder.json", core::dump(names)}, {"vocab.bpe", merges});
  DOCTEST_CHECK(imported->fingerprint() == bpe->fingerprint());

  const auto base64 = [](std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      std::uint32_t bits = 0;
      for (std::size_t j = 0; j < 3; ++j)
        bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
      for (std::size_t j = 0; j < 4; ++j)
        out += i + j > bytes.size() ? '=' : digits[bits >> (18 - 6 * j) & 63];
    }
    return out;
  };
  const auto mark = *bpe->end_of_document();
  for (std::uint32_t id = 0; id < bpe->size(); ++id)
    if (id != mark) ranks += base64(bpe->token(id)) + " " + std::to_string(id) + "\n";
  DOCTEST_CHECK(text::import_tiktoken({"x.tiktoken", ranks})->fingerprint() == bpe->fingerprint());
}

DOCTEST_TEST_CASE("import: damaged files are named with the line") {
  const text::NamedText vocabulary{"v.json", R"({"a":0,"b":1,"ab":2})"};
  const auto merges = [&](const std::string& text) {
    return thrown([&] { text::import_gpt2(vocabulary, {"m.bpe", text}); });
  };
  DOCTEST_CHECK(merges("#version: 0.2\na b\n").code == 0);
  DOCTEST_CHECK(merges("a b\nb a\n").names("m.bpe:2:"));
  DOCTEST_CHECK(merges("a\n").names("m.bpe:1:"));
  const auto ranks = [](const std::string& text) {
    return thrown([&] { text::import_tiktoken({"r.tiktoken", text}); });
  };
  DOCTEST_CHECK(ranks("IQ== 0\nIQ== 1\n").names("r.tiktoken:2:"));
  DOCTEST_CHECK(ranks("IQ== x\n").names("r.tiktoken:1:"));
  DOCTEST_CHECK(ranks("I?== 0\n").names("r.tiktoken:1:"));
  DOCTEST_CHECK(ranks("IQ== 99999999999\n").names("r.tiktoken:1:"));
  DOCTEST_CHECK(ranks("IQ== 0\n").names("no rank for byte 0"));
  const auto broken = thrown([] { text::import_gpt2({"v.json", R"({"a":"x"})"}, {"m.bpe", ""}); });
  DOCTEST_CHECK(broken.code == 65);
  DOCTEST_CHECK(broken.names("v.json"));
}
