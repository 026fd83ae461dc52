// Tokenizers of other pipelines: ids equal to those of Hugging Face's tokenizers, independent of
// cuts in the text. Decoding restores texts, and a tokenizer.json that was read is written
// unchanged.

#include <doctest/doctest.h>

#include <sstream>

#include "core/json.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pieces.h"
#include "text/tokenizer/utf8.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

namespace {

using Ids = std::vector<std::uint32_t>;

constexpr const char* kNames[] = {"deepseek", "digits", "gemma", "llama2", "llama3", "lower",
    "mistral", "neox", "metaspace", "numbers", "o200k", "qwen2", "smollm", "tekken"};

text::TokenizerPtr pipeline(const std::string& name) {
  return text::load_tokenizer(sample::kFolder + "pipelines/" + name + ".json");
}

std::vector<std::string> stored_texts() {
  std::vector<std::string> texts;
  std::istringstream lines(sample::file("pipelines/texts.jsonl"));
  for (std::string line; std::getline(lines, line);)
    texts.push_back(core::parse_json(line, "texts").at("text").get<std::string>());
  return texts;
}

std::string fnv(const Ids& ids) {
  std::uint32_t value = 0x811C9DC5;
  for (const std::uint32_t id : ids)
    for (int i = 0; i < 4; ++i) value = (value ^ (id >> 8 * i & 0xFF)) * 0x01000193;
  return fmt::format("{:08x}", value);
}

// Texts that are difficult for these tokenizers.
rc::Gen<std::string> hard_text() {
  static const std::vector<std::string> pieces = {"<tool_call>", "</think>", "<|im_end|>", "<|x|>",
      "<|x", "    ", "word", "words", "\xE2\x96\x81", "<0x41>", "lampkeeper", "LAMP", "lAmp", "'S",
      "'\u017f", "\u0301", "\u1E9B", "\u0323", "\uAC00", "\u11A8", "\u1100", "\u1161", "\uFB01",
      "\u4E00", "/\n", "\r", "\u0130", "12345", " 1", "e\u0301", "\u0915\u093c"};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(
                          rc::gen::oneOf(rc::gen::elementOf(pieces), sample::text())),
      [](const std::vector<std::string>& parts) {
        std::string all;
        for (const auto& part : parts) all += part.substr(0, 60);
        return all;
      });
}

// A tokenizer.json with one value changed, by JSON pointer.
std::string with_change(
    const std::string& name, const std::string& pointer, const core::Json& value) {
  core::Json json = core::parse_json(sample::file("pipelines/" + name + ".json"), name);
  json[core::Json::json_pointer(pointer)] = value;
  return core::dump(json);
}

}  // namespace

DOCTEST_TEST_CASE("pipelines: the ids of Hugging Face's tokenizers") {
  const auto texts = stored_texts();
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    std::istringstream sums(sample::file("pipelines/" + name + ".sums"));
    std::string all;
    for (const std::string& text : texts) {
      std::string sum;
      DOCTEST_REQUIRE(std::getline(sums, sum));
      DOCTEST_CAPTURE(text);
      DOCTEST_CHECK(fnv(tokenizer->encode(text)) == sum);
      all += text;
    }
    // An encoder with a cache gives the ids of one without.
    const auto encoder = tokenizer->encoder();
    Ids ids, again;
    for (int i = 0; i < 20; ++i) encoder->encode(all, ids);
    ids.clear();
    encoder->encode(all, ids);
    tokenizer->encode(all, again);
    DOCTEST_CHECK(ids == again);
  }
}

DOCTEST_TEST_CASE("added tokens outside the model's vocabulary are never ids of ordinary text") {
  for (const auto& row : core::parse_json(sample::file("added.json"), "added.json")) {
    DOCTEST_CAPTURE(row.dump());
    const auto tokenizer = text::parse_tokenizer(core::dump(row.at("file")), "x");
    const auto again = text::parse_tokenizer(tokenizer->json(), "again");
    DOCTEST_CHECK(again->json() == tokenizer->json());
    for (std::size_t i = 0; i < row.at("texts").size(); ++i)
      for (const auto& one : {tokenizer, again})
        DOCTEST_CHECK(
            one->encode(row.at("texts")[i].get<std::string>()) == row.at("ids")[i].get<Ids>());
    for (const auto& token : row.at("file").at("added_tokens"))
      DOCTEST_CHECK(again->id_of(token.at("content").get<std::string>()) ==
                    token.at("id").get<std::uint32_t>());
  }
}

DOCTEST_TEST_CASE("pipelines: decoders give the texts of Hugging Face's tokenizers") {
  const auto known = core::parse_json(sample::file("decoders.json"), "decoders.json");
  const auto ids = known.at("ids").get<std::vector<Ids>>();
  for (const auto& row : known.at("decoders")) {
    DOCTEST_CAPTURE(row.dump());
    const auto tokenizer =
        text::parse_tokenizer(with_change("llama2", "/decoder", row.at("decoder")), "x");
    const auto again = text::parse_tokenizer(tokenizer->json(), "again");
    DOCTEST_CHECK(again->json() == tokenizer->json());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      DOCTEST_CHECK(tokenizer->decode(ids[i]) == row.at("texts")[i].get<std::string>());
      DOCTEST_CHECK(again->decode(ids[i]) == tokenizer->decode(ids[i]));
    }
  }
}

DOCTEST_TEST_CASE("pipelines: ByteFallback reads the names of bytes in small letters too") {
  auto json = core::parse_json(sample::file("pipelines/llama2.json"), "llama2");
  const std::uint32_t first = json["added_tokens"].back().at("id").get<std::uint32_t>() + 1;
  std::uint32_t last = first - 1;
  for (const char* name : {"<0xc3>", "<0xfG>", "<0xff"}) json["model"]["vocab"][name] = ++last;
  const auto tokenizer = text::parse_tokenizer(core::dump(json), "x");
  DOCTEST_CHECK(tokenizer->decode(Ids{first, *tokenizer->id_of("<0xA9>")}) == "\xC3\xA9");
  DOCTEST_CHECK(tokenizer->decode(Ids{last - 1, last}) == "<0xfG><0xff");
  // Without ByteFallback they are texts, also when the tokenizer is read again.
  json["decoder"] = {{"type", "Fuse"}};
  const auto plain = text::parse_tokenizer(core::dump(json), "x");
  for (const auto& one : {plain, text::parse_tokenizer(plain->json(), "again")})
    DOCTEST_CHECK(one->decode(Ids{first}) == "<0xc3>");
}

DOCTEST_TEST_CASE(
    "pipelines: a part of a tokenizer.json that is not supported is refused by name") {
  const auto why = [](const std::string& name, const std::string& pointer, const char* value) {
    const auto error = thrown([&] {
      text::parse_tokenizer(with_change(name, pointer, core::parse_json(value, "value")), "x");
    });
    DOCTEST_CHECK(error.code == 65);
    return error.text;
  };
  const auto names = [&](const std::string& name, const std::string& pointer, const char* value,
                         std::string_view part) {
    const auto text = why(name, pointer, value);
    DOCTEST_CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  for (const char* type : {"CTC", "WordPiece", "BPEDecoder", "ByteLevel", "Other"})
    names("llama2", "/decoder", fmt::format(R"({{"type": "{}"}})", type).c_str(),
        fmt::format("the decoder {} is not supported here", type));
  for (const char* type : {"CTC", "Replace", "Metaspace", "Other"})
    names("llama3", "/decoder", fmt::format(R"({{"type": "{}"}})", type).c_str(),
        fmt::format("the decoder {} is not supported with this model", type));
  names("llama2", "/decoder", R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})",
      "of a Regex");
  names("llama2", "/decoder", R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})",
      "after Fuse only");
  names("llama2", "/decoder/decoders/3/start", "2", "one space at the start only");
  names("llama2", "/decoder/decoders/3/stop", "1", "one space at the start only");
  names("llama2", "/decoder/decoders/3",
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": ""})",
      "Replace after other steps");
  auto spaced = core::parse_json(sample::file("pipelines/llama2.json"), "llama2");
  spaced["decoder"] = {{"type", "Metaspace"}, {"prepend_scheme", "always"}};
  spaced["model"]["vocab"][" x"] = 595;
  const auto kept = thrown([&] { text::parse_tokenizer(core::dump(spaced), "x"); });
  DOCTEST_CHECK(kept.text.find("Metaspace is not supported with token 595") != std::string::npos);
  spaced["decoder"]["prepend_scheme"] = "never";
  DOCTEST_CHECK(text::parse_tokenizer(core::dump(spaced), "x")->decode(Ids{595}) == " x");
  names("llama2", "/post_processor",
      R"({"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})",
      "post_processor BertProcessing");
  names("llama2", "/model/dropout", "0.1", "\"dropout\"");
  names("llama3", "/model/continuing_subword_prefix", "\"##\"", "\"continuing_subword_prefix\"");
  names("llama3", "/truncation", R"({"max_length": 5})", "truncation");
  names("llama3", "/padding", R"({"pad_id": 0})", "padding");
  // The ids of a template's tokens are those that it lists.
  const auto two = with_change(
      "llama2", "/post_processor/special_tokens/<s>/ids", core::parse_json("[2, 1]", "value"));
  DOCTEST_CHECK(text::parse_tokenizer(two, "x")->text_template().begin == Ids{2, 1});
  names(
      "llama2", "/post_processor/special_tokens/<s>/ids", "[99999]", "99999, which is not a token");
  // A replacement may not make a text without bounds.
  core::Json steps = core::Json::array();
  for (int i = 0; i < 60; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  const auto grows = text::parse_tokenizer(
      with_change("llama2", "/decoder", {{"type", "Sequence"}, {"decoders", steps}}), "x");
  DOCTEST_CHECK(thrown([&] { grows->decode(grows->encode("a")); }).code == 65);
}

DOCTEST_TEST_CASE("pipelines: with special tokens the ids of Hugging Face's tokenizers") {
  const auto known = core::parse_json(sample::file("special.json"), "special.json");
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto plain = pipeline(name), special = plain->parsing_special();
    DOCTEST_CHECK(special->json() == plain->json());
    DOCTEST_CHECK(special->kind() == plain->kind());
    const text::SpecialText finder(*plain);
    for (const auto& row : known.at(name)) {
      const auto text = row[0].get<std::string>();
      DOCTEST_CAPTURE(text);
      DOCTEST_CHECK(special->encode(text) == row[1].get<Ids>());
      DOCTEST_CHECK(plain->encode(text) != row[1].get<Ids>());
      DOCTEST_CHECK(!finder.find(text).empty());
    }
    DOCTEST_CHECK(rc::check([&] {
      std::string text = *hard_text();
      for (const auto& token : special->special_tokens())
        text += (*rc::gen::elementOf(std::vector<std::string>{"", " ", "x"})) + token.content +
                text.substr(0, 20);
      RC_ASSERT(sample::streamed(special, text, *rc::gen::inRange<std::size_t>(1, 40)) ==
                special->encode(text));
    }));
    DOCTEST_CHECK(finder.find("the < lampkeeper <| and </ his <s").empty());
  }
  DOCTEST_CHECK_THROWS_AS(
      text::load_tokenizer(sample::kFolder + "word.json")->parsing_special(), core::Error);
  // Of bytes alone, and of bytes with a token.
  const auto bytes = text::load_tokenizer("bytes")->parsing_special();
  DOCTEST_CHECK(bytes->encode("a<") == Ids{'a', '<'});
}

DOCTEST_TEST_CASE("pipelines: a text in pieces gives the ids of the whole") {
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *hard_text();
      RC_ASSERT(sample::streamed(tokenizer, text, *rc::gen::inRange<std::size_t>(1, 40)) ==
                tokenizer->encode(text));
    }));
    // Any allowed cut, with and without the text after it.
    DOCTEST_CHECK(rc::check([&] {
      std::string text = *hard_text();
      while (text.size() < 1500) text += text + " and so on, " + *hard_text();
      const auto known = *rc::gen::inRange<std::size_t>(1, text.size() + 1);
      const char* cut = tokenizer->cut(text.data(), text.data() + known);
      if (cut == nullptr) return;
      const auto at = static_cast<std::size_t>(cut - text.data());
      RC_ASSERT(at > 0 && at <= known);
      const auto encoder = tokenizer->encoder();
      Ids ids;
      encoder->encode(std::string_view(text).substr(0, at), ids);
      encoder->encode(std::string_view(text).substr(at), ids, true);
      RC_ASSERT(ids == tokenizer->encode(text));
    }));
  }
}

DOCTEST_TEST_CASE("pipelines: no cut parts a token from the white space that it takes") {
  std::string text;
  while (text.size() < 1500)
    text += "a<|x|>\xE3\x80\x80'l <tool_call>\n\xC2\xA0 b <|x|> c</think>  </think>d";
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    const Ids whole = tokenizer->encode(text);
    std::set<const char*> cuts;
    for (std::size_t known = 1; known <= text.size(); ++known)
      cuts.insert(tokenizer->cut(text.data(), text.data() + known));
    cuts.erase(nullptr);
    for (const char* cut : cuts) {
      const auto at = static_cast<std::size_t>(cut - text.data());
      DOCTEST_CAPTURE(at);
      const auto encoder = tokenizer->encoder();
      Ids ids;
      encoder->encode(std::string_view(text).substr(0, at), ids);
      encoder->encode(std::string_view(text).substr(at), ids, true);
      DOCTEST_CHECK(ids == whole);
    }
  }
}

DOCTEST_TEST_CASE("pipelines: ordinary text has places for cuts") {
  std::string text;
  while (text.size() < 100000) text += sample::file("sample.txt");
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    // The pieces of a text that the normalizer changes are known only for the whole text.
    if (name != "lower")
      DOCTEST_CHECK(tokenizer->cut(text.data(), text.data() + text.size()) != nullptr);
    DOCTEST_CHECK(sample::streamed(tokenizer, text, 7777) == tokenizer->encode(text));
  }
}

DOCTEST_TEST_CASE("pipelines: megabytes without a place for a cut") {
  for (const std::string name : {"llama3", "qwen2", "llama2", "deepseek"}) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    const std::string text = "x " + std::string(9 << 20, 'q') + " y";
    DOCTEST_CHECK(sample::streamed(tokenizer, text, 1 << 20) == tokenizer->encode(text));
  }
}

DOCTEST_TEST_CASE("pipelines: texts come back") {
  // For these texts the normalizer or an added token changes the text.
  const std::set<std::string> lossy = {
      "deepseek", "lower", "neox", "qwen2", "metaspace", "numbers", "llama2", "mistral", "gemma"};
  for (const std::string name : kNames) {
    if (lossy.count(name)) continue;
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *hard_text();
      RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == text);
    }));
  }
  // A prefix is removed again, a space of the text is kept, and bytes replace characters without a
  // token.
  const std::string odd = "\xff\xf0\x9f \xe2\x82\xac \xf0\x9f\xa6\x84";
  for (const std::string name : {"llama2", "gemma"})
    for (const std::string text : {"the lamp", " the  lamp ", "   ", "\n the", "", odd.c_str()}) {
      DOCTEST_CAPTURE(name);
      DOCTEST_CAPTURE(text);
      DOCTEST_CHECK(pipeline(name)->decode(pipeline(name)->encode(text)) == text);
    }
  DOCTEST_CHECK(
      pipeline("mistral")->decode(pipeline("mistral")->encode("the  lamp")) == "the  lamp");
  DOCTEST_CHECK(pipeline("lower")->decode(pipeline("lower")->encode("The \uFB01ne")) == "the fine");
}

DOCTEST_TEST_CASE("pipelines: tokenizer.json is the same after it was read") {
  const auto texts = stored_texts();
  for (const std::string name : kNames) {
    DOCTEST_CAPTURE(name);
    const auto tokenizer = pipeline(name);
    const std::string json = tokenizer->json();
    DOCTEST_CHECK(core::dump(core::parse_json(json, name)) == json);
    const auto again = text::parse_tokenizer(json, name);
    DOCTEST_CHECK(again->json() == json);
    for (const auto& text : texts) DOCTEST_CHECK(again->encode(text) == tokenizer->encode(text));
  }
}

DOCTEST_TEST_CASE("pipelines: a template says what a text begins with") {
  const auto llama = pipeline("llama3");
  DOCTEST_CHECK(llama->text_template().begin == Ids{*llama->id_of("<|begin_of_text|>")});
  DOCTEST_CHECK(llama->text_template().end.empty());
  DOCTEST_CHECK(pipeline("qwen2")->text_template().empty());
  const auto pieces = pipeline("llama2");
  DOCTEST_CHECK(pieces->text_template().begin == Ids{1});
}

DOCTEST_TEST_CASE("pipelines: whole words, added tokens, unknown characters, by hand") {
  const auto llama = pipeline("llama3");
  DOCTEST_CHECK(llama->encode("lampkeeper") == Ids{*llama->id_of("lampkeeper")});
  const auto qwen = pipeline("qwen2");
  DOCTEST_CHECK(qwen->encode("<tool_call>") == Ids{*qwen->id_of("<tool_call>")});
  DOCTEST_CHECK(qwen->encode("<|im_end|>").size() > 1);  // special tokens are ordinary text
  const auto lower = pipeline("lower");
  const auto word = *lower->id_of("word");
  DOCTEST_CHECK(lower->encode("A WORD, words")[2] == word);
  const auto metaspace = pipeline("metaspace");
  const auto unknown = *metaspace->id_of("<unk>");
  DOCTEST_CHECK(
      metaspace->encode("\u4E00\u4E01\u4E02") == Ids{*metaspace->id_of("\u2581"), unknown});
}

DOCTEST_TEST_CASE("pipelines: what is not supported is named") {
  const auto names = [](const std::string& json, std::string_view part) {
    const auto error = thrown([&] { text::parse_tokenizer(json, "x.json"); });
    return error.code == 65 && error.text.starts_with("x.json: ") && error.names(part) &&
           error.text.find('\n') == std::string::npos;
  };
  const auto type = [](const char* name) { return core::Json{{"type", name}}; };
  DOCTEST_CHECK(names(with_change("llama3", "/normalizer", type("StripAccents")), "StripAccents"));
  DOCTEST_CHECK(names(with_change("llama2", "/normalizer/normalizers/1/pattern", {{"Regex", " "}}),
      "Replace of a Regex"));
  DOCTEST_CHECK(names(
      with_change("llama2", "/normalizer/normalizers/1/pattern", {{"String", "ab"}}), "\"ab\""));
  DOCTEST_CHECK(names(
      with_change("llama3", "/pre_tokenizer/pretokenizers/0", type("Punctuation")), "Punctuation"));
  DOCTEST_CHECK(
      names(with_change("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "(?<!a)b"),
          "looks behind"));
  DOCTEST_CHECK(
      names(with_change("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"), "(a"));
  DOCTEST_CHECK(names(with_change("llama3", "/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
      "behavior Removed"));
  DOCTEST_CHECK(
      names(with_change("llama3", "/post_processor", type("RobertaProcessing")), "Roberta"));
  DOCTEST_CHECK(
      names(with_change("llama3", "/post_processor/single/0/SpecialToken/id", "<bos>"), "<bos>"));
  DOCTEST_CHECK(names(with_change("llama2", "/decoder/decoders/0", type("CTC")), "CTC"));
  DOCTEST_CHECK(names(with_change("llama2", "/pre_tokenizer", type("Whitespace")), "Whitespace"));
  DOCTEST_CHECK(
      names(with_change("mistral", "/pre_tokenizer/prepend_scheme", "x"), "prepend_scheme"));
  core::Json cut = core::parse_json(with_change("llama2", "/version", "1.0"), "llama2");
  cut["model"]["vocab"].erase("<0x7F>");
  DOCTEST_CHECK(names(core::dump(cut), "<0x7F>"));
  DOCTEST_CHECK(names(with_change("qwen2", "/added_tokens/3/id", 3), "another token"));
}

DOCTEST_TEST_CASE("splitting quickly finds what splitting finds") {
  const auto same = [](std::string_view text, auto quick, auto plain) {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const char* const stop = plain(p, end);
      if (quick(p, end) != stop || stop <= p) return false;
      p = stop;
    }
    return true;
  };
  DOCTEST_CHECK(rc::check([&] {
    // Long enough for the fast path.
    const std::string text = *hard_text() + "then Some MoreWORDS aB1 'LL follow/\nhere    ";
    RC_ASSERT(same(text, text::cl100k_pretoken_end_quick<3>,
        [](auto p, auto end) { return text::cl100k_pretoken_end(p, end, 3); }));
    RC_ASSERT(same(text, text::o200k_pretoken_end_quick<3, true>,
        [](auto p, auto end) { return text::o200k_pretoken_end(p, end, 3, true); }));
    RC_ASSERT(same(text, text::o200k_pretoken_end_quick<1, false>,
        [](auto p, auto end) { return text::o200k_pretoken_end(p, end, 1, false); }));
  }));
}

DOCTEST_TEST_CASE("the machines split as their patterns do") {
  using Kind = text::Split::Kind;
  for (const Kind kind : {Kind::gpt2, Kind::llama3, Kind::qwen2, Kind::o200k, Kind::tekken}) {
    text::SplitStep step;
    step.text = text::pattern_of(kind);
    step.regex = std::make_shared<const text::Regex>(step.text);
    const text::Split machine(kind), pattern({step});
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *hard_text();
      if (!text::is_valid_utf8(text)) return;  // PCRE2 stops there, the state machines continue
      std::vector<std::string_view> pieces;
      text::MatchBudget budget;
      pattern.split(text, pieces, budget);
      const char* p = text.data();
      for (const auto& piece : pieces) {
        RC_ASSERT(piece.data() == p);
        RC_ASSERT(machine.pretoken_end(p, text.data() + text.size()) == p + piece.size());
        p += piece.size();
      }
      RC_ASSERT(p == text.data() + text.size());
    }));
  }
}
