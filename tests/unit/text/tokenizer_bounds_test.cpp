// For any tokenizer, time and memory grow linearly with the text, or the text is refused. Fast
// paths give the results of the slow paths.

#include <doctest/doctest.h>

#include "core/json.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/utf8.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

namespace {

using Pieces = std::vector<std::string>;
using Ids = std::vector<std::uint32_t>;
using Behaviour = text::SplitStep::Behaviour;

constexpr std::size_t kMegabyte = 1000000;

text::Split by_pattern(const std::string& pattern, Behaviour behaviour = Behaviour::isolated) {
  text::SplitStep step;
  step.text = pattern;
  step.behaviour = behaviour;
  step.regex = std::make_shared<const text::Regex>(pattern);
  return text::Split({step});
}

text::Split by_groups(const std::string& pattern, Behaviour behaviour = Behaviour::isolated) {
  text::SplitStep step;
  step.what = text::SplitStep::What::digit_groups;
  step.text = pattern;
  step.behaviour = behaviour;
  step.groups = text::digit_groups_of(pattern).value();
  return text::Split({step});
}

Pieces pieces_of(const text::Split& split, std::string_view text) {
  text::MatchBudget budget;
  std::vector<std::string_view> views;
  split.split(text, views, budget);
  return {views.begin(), views.end()};
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string all;
  all.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += part;
  return all;
}

// Parts in sequence.
rc::Gen<std::string> text_of(std::vector<std::string> parts) {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts)),
      [](const std::vector<std::string>& chosen) {
        std::string all;
        for (const auto& part : chosen) all += part;
        return all;
      });
}

std::string pipeline_with(
    const std::string& name, const std::string& pointer, const core::Json& value) {
  core::Json json = core::parse_json(sample::file("pipelines/" + name + ".json"), name);
  json[core::Json::json_pointer(pointer)] = value;
  return core::dump(json);
}

core::Json replacement(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

core::Json sequence(const std::vector<core::Json>& steps) {
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

}  // namespace

DOCTEST_TEST_CASE("bounds: a pattern that takes more than so many steps a byte is refused") {
  for (const std::string pattern :
      {"a*b|.", "a*+b|.", "(a(?R)?b)|.", "(?:a(?!a*b))+|.", "a*a*a*b|.", "(?:a+)+b|."}) {
    DOCTEST_CAPTURE(pattern);
    const auto error = thrown([&] { pieces_of(by_pattern(pattern), repeated("a", 20000)); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(pattern));
    DOCTEST_CHECK(error.names("100 steps for each byte"));
  }
  const auto quadratic = by_pattern("a*b|(?s:.)");
  const std::string english = sample::file("sample.txt");
  DOCTEST_CHECK(pieces_of(quadratic, "aab" + repeated("a", 50) + "c").size() == 52);
  DOCTEST_CHECK(pieces_of(quadratic, english).size() > english.size() / 2);
  // One long run in a long text is within its budget.
  const std::string text = english + repeated("a", 500) + repeated(english, 10);
  DOCTEST_CHECK(pieces_of(quadratic, text).size() > text.size() / 2);
  // Patterns whose comparisons would not be counted.
  for (const char* pattern : {"(*NO_JIT)a", "a{1001}", "a{2,4000}b", R"((a*)\1b)"})
    DOCTEST_CHECK(thrown([&] { text::Regex{pattern}; }).code == 65);
  DOCTEST_CHECK(pieces_of(by_pattern(R"([\x{4E00}-\x{9999}]{1,1000}|\p{N}{1,510})"), "a12\u4E01") ==
                Pieces{"a", "12", "\u4E01"});
}

DOCTEST_TEST_CASE("bounds: long matches of patterns that are linear") {
  const std::string spaces = repeated(" ", kMegabyte), letters = repeated("ab'c", 25000);
  DOCTEST_CHECK(pieces_of(by_pattern(R"(\s*[\r\n]+|\s+(?!\S)|\s+|\S+)"), spaces + "x") ==
                Pieces{repeated(" ", kMegabyte - 1), " ", "x"});
  DOCTEST_CHECK(pieces_of(by_pattern("(?:[a-z]|'[a-z])+|."), letters) == Pieces{letters});
  DOCTEST_CHECK(
      pieces_of(by_pattern("x"), letters + "xx" + letters) == Pieces{letters, "x", "x", letters});
}

DOCTEST_TEST_CASE("bounds: patterns and their machines agree on long runs") {
  using Kind = text::Split::Kind;
  for (const Kind kind : {Kind::gpt2, Kind::llama3, Kind::qwen2, Kind::o200k, Kind::tekken}) {
    const auto pattern = by_pattern(std::string(text::pattern_of(kind)));
    const text::Split machine(kind);
    DOCTEST_CHECK(rc::check([&] {
      const std::string text =
          *text_of({repeated(" ", 90), repeated("\n", 140), "word", "1234", repeated("x", 130),
              repeated("\u00e9", 70), "'s", "!?", repeated("\U0001F469\u200D", 40), "A", " "});
      const char* p = text.data();
      for (const auto& piece : pieces_of(pattern, text)) {
        RC_ASSERT(machine.pretoken_end(p, text.data() + text.size()) ==
                  p + static_cast<std::ptrdiff_t>(piece.size()));
        p += piece.size();
      }
    }));
  }
}

DOCTEST_TEST_CASE("bounds: an empty match splits, as Hugging Face's tokenizers have it") {
  DOCTEST_CHECK(pieces_of(by_pattern("(?=[A-Z])"), "oneTwoThree") == Pieces{"one", "Two", "Three"});
  DOCTEST_CHECK(pieces_of(by_pattern("(?=[A-Z])|e"), "TheEnd") == Pieces{"Th", "e", "End"});
  DOCTEST_CHECK(pieces_of(by_pattern("x*"), "axxb") == Pieces{"a", "xx", "b"});
}

DOCTEST_TEST_CASE("bounds: digits grouped from the right, as PCRE2 groups them") {
  struct Form {
    std::string pattern, as_pcre2;
  };
  std::vector<Form> forms;
  for (const std::string pattern : {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))|\P{N}+)",
           R"(\d{1,3}(?=(?:\d{3})*(?!\d)))", R"(\p{Nd}{1,4}(?=(?>\p{Nd}{4})*(?:$|\P{Nd}))|\P{Nd}+)",
           R"([0-9]{1,2}(?=([0-9]{2})*(?![0-9])))", R"(\p{N}{1,1}(?=(?:\p{N}{1})*(\P{N}|$)))",
           R"((?=(\d{3})+(?!\d)))", R"((?=(?:\p{N}{2})+(?!\p{N})))"})
    forms.push_back({pattern, pattern});
  // PCRE2 looks back for \b. After a digit the result uses Oniguruma's word characters.
  const std::string border = R"((?![\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]))";
  forms.push_back({R"(\d{1,3}(?=(?:\d{3})*\b))", R"(\d{1,3}(?=(?:\d{3})*)" + border + ")"});
  forms.push_back(
      {R"(\d{1,3}(?=(?:\d{3})*\b)|\D+)", R"(\d{1,3}(?=(?:\d{3})*)" + border + R"()|\D+)"});
  for (const auto& [pattern, as_pcre2] : forms)
    for (const Behaviour behaviour : {Behaviour::isolated, Behaviour::with_previous,
             Behaviour::with_next, Behaviour::contiguous}) {
      DOCTEST_CAPTURE(pattern);
      const auto groups = by_groups(pattern, behaviour), pcre2 = by_pattern(as_pcre2, behaviour);
      DOCTEST_CHECK(rc::check([&] {
        const std::string text = *text_of({"1", "23", "456", "7890", "\u0663", "\u0664\u0665",
            "\u00b2", "\u2167", " ", "a", "\n", "_", "\u0301", "\u4E00", ".", "12345678"});
        RC_ASSERT(pieces_of(groups, text) == pieces_of(pcre2, text));
        // A cut changes nothing, whatever follows.
        const auto known = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
        const char* cut = groups.last_certain_end(text.data(), text.data() + known);
        if (cut == nullptr) return;
        const auto at = static_cast<std::size_t>(cut - text.data());
        RC_ASSERT(at > 0 && at < known);
        Pieces parts = pieces_of(groups, text.substr(0, at));
        for (const auto& piece : pieces_of(groups, text.substr(at))) parts.push_back(piece);
        RC_ASSERT(parts == pieces_of(groups, text));
      }));
    }
  for (const std::string other : {R"(\p{N}{1,3}(?=(?:\p{N}{2})*(?:\P{N}|$)))", R"(\p{N}{1,3})",
           R"((?=(\d{3})+))", R"(\d{1,3}(?=(?:\d{3})*(?!\d))|.)", R"(\d{1,0}(?=(?:\d{0})*(?!\d)))"})
    DOCTEST_CHECK(!text::digit_groups_of(other));
}

DOCTEST_TEST_CASE("bounds: a megabyte of digits, grouped from the right") {
  const auto tokenizer =
      text::parse_tokenizer(pipeline_with("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex",
                                R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))|\P{N}+)"),
          "x.json");
  const std::string text = repeated("1", kMegabyte);
  const Ids ids = tokenizer->encode("x" + text + "y");
  DOCTEST_CHECK(ids.size() >= kMegabyte / 3);
  DOCTEST_CHECK(sample::streamed(tokenizer, "x" + text + "y", 100000) == ids);
  DOCTEST_CHECK(text::parse_tokenizer(tokenizer->json(), "again")->json() == tokenizer->json());
}

DOCTEST_TEST_CASE("bounds: what a normalizer may make of a text") {
  const auto refused = [](const core::Json& normalizer, const std::string& text,
                           std::string_view part) {
    const auto tokenizer =
        text::parse_tokenizer(pipeline_with("llama3", "/normalizer", normalizer), "x.json");
    const auto error = thrown([&] { tokenizer->encode(text); });
    DOCTEST_CAPTURE(error.text);
    return error.code == 65 && error.names(part) && error.names("64 times");
  };
  DOCTEST_CHECK(refused(sequence(std::vector<core::Json>(34, replacement("a", "aa"))), "a",
      "step 13 of the tokenizer's normalizer, Replace of \"a\" by 2 bytes"));
  DOCTEST_CHECK(refused(sequence(std::vector<core::Json>(3, replacement("a", repeated("a", 1000)))),
      repeated("a", 100), "step 1 "));
  DOCTEST_CHECK(refused(sequence({{{"type", "Prepend"}, {"prepend", repeated("a", 10000)}}}), "b",
      "Prepend of 10000 bytes"));
  DOCTEST_CHECK(refused(sequence({{{"type", "NFKC"}}, replacement(" ", repeated("_", 100))}),
      repeated("\uFDFA", 1000), "step 2 "));
  // The pieces between added tokens share the limit of the text's size.
  core::Json json =
      core::parse_json(pipeline_with("qwen2", "/normalizer",
                           sequence({replacement("b", repeated("c", 1000)), {{"type", "NFC"}}})),
          "x");
  const auto tokenizer = text::parse_tokenizer(core::dump(json), "x.json");
  DOCTEST_CHECK(tokenizer->encode("b<tool_call>b").size() > 2);
  DOCTEST_CHECK(thrown([&] { tokenizer->encode(repeated("b<tool_call>", 20)); }).code == 65);
  // Real tokenizers are far from the limit.
  text::Normalizer nfkc({{text::NormalStep::What::nfkc, "", ""}});
  std::string buffer;
  DOCTEST_CHECK(nfkc.apply(repeated("\uFDFA", 1000), true, buffer).size() == 33000);
  DOCTEST_CHECK(thrown([] {
    text::parse_tokenizer(pipeline_with("llama3", "/normalizer",
                              sequence(std::vector<core::Json>(300, replacement("a", "b")))),
        "x.json");
  }).names("256 steps"));
}

DOCTEST_TEST_CASE("bounds: long runs of marks are put into order") {
  constexpr std::size_t kMarks = 200000;
  const std::string above = "\u0301", below = "\u0323";
  std::string buffer;
  for (const auto what : {text::NormalStep::What::nfc, text::NormalStep::What::nfkc}) {
    const text::Normalizer normalizer({{what, "", ""}});
    const auto normal = normalizer.apply("a" + repeated(above + below, kMarks), true, buffer);
    DOCTEST_CHECK(normal == "\u1EA1" + repeated(below, kMarks - 1) + repeated(above, kMarks));
    const auto reversed =
        normalizer.apply("x" + repeated(above, kMarks) + repeated(below, kMarks), true, buffer);
    DOCTEST_CHECK(reversed == "x" + repeated(below, kMarks) + repeated(above, kMarks));
    // Hangul, singletons, and characters that decompose to several.
    DOCTEST_CHECK(normalizer.apply("\u1112\u1161\u11AB \u212B \u0958 \u1E9B\u0323", true, buffer) ==
                  (what == text::NormalStep::What::nfc ? "\uD55C \u00C5 \u0915\u093C \u1E9B\u0323"
                                                       : "\uD55C \u00C5 \u0915\u093C \u1E69"));
  }
}

namespace {

// A plain version of AddedMatcher::each that tries all tokens at each place.
std::string plainly_found(const std::vector<text::AddedToken>& tokens, std::string_view text) {
  const auto is_space = [&](std::size_t at) { return text[at] == ' ' || text[at] == '\n'; };
  const auto is_word = [&](std::size_t at) { return text[at] >= 'a' && text[at] <= 'z'; };
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const text::AddedToken* best = nullptr;
    for (const auto& token : tokens)
      if (text.substr(at).starts_with(token.content) &&
          (best == nullptr || token.content.size() > best->content.size()))
        best = &token;
    if (best == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + best->content.size();
    at = end;
    if (best->special || (best->single_word && ((begin > 0 && is_word(begin - 1)) ||
                                                   (end < text.size() && is_word(end)))))
      continue;
    while (best->lstrip && begin > done && is_space(begin - 1)) --begin;
    if (best->lstrip) begin = std::max(begin, done);
    while (best->rstrip && end < text.size() && is_space(end)) ++end;
    if (done < begin) out.append("[").append(text.substr(done, begin - done)).append("]");
    if (begin < end) out += std::to_string(best->id) + ";";
    done = end;
  }
  if (done < text.size()) out.append("[").append(text.substr(done)).append("]");
  return out;
}

std::string found_by(const text::AddedMatcher& matcher, std::string_view text) {
  std::string out;
  matcher.each(
      text, [&](std::string_view piece) { out.append("[").append(piece).append("]"); },
      [&](std::uint32_t id) { out += std::to_string(id) + ";"; });
  return out;
}

text::AddedToken added(std::uint32_t id, std::string content) { return {id, std::move(content)}; }

}  // namespace

DOCTEST_TEST_CASE("bounds: added tokens are found as by looking at all of them everywhere") {
  const auto content = text_of({"a", "b", " ", "ab", "ba", "\n", "\u00ac"});
  DOCTEST_CHECK(rc::check([&] {
    std::vector<text::AddedToken> tokens;
    std::vector<std::string> contents = {"~"};
    const auto n = *rc::gen::inRange(1, 8);
    for (int i = 0; i < n; ++i) {
      text::AddedToken token = added(static_cast<std::uint32_t>(i), *content);
      if (token.content.empty() ||
          std::find(contents.begin(), contents.end(), token.content) != contents.end())
        continue;
      contents.push_back(token.content);
      const auto bits = *rc::gen::inRange(0, 64);
      token.lstrip = bits & 1;
      token.rstrip = bits & 2;
      token.single_word = (bits & 12) == 12;
      token.special = (bits & 48) == 48;
      tokens.push_back(token);
    }
    const text::AddedMatcher matcher(tokens);
    const std::string text =
        *text_of({"a", "b", "ab", "ba", " ", "\n", "c", "aab", "   ", "\u00ac"});
    RC_ASSERT(found_by(matcher, text) == (matcher.empty() ? text.empty() ? "" : "[" + text + "]"
                                                          : plainly_found(tokens, text)));
  }));
}

DOCTEST_TEST_CASE("bounds: added tokens of any number and length, and runs of white space") {
  const std::string letters = repeated("a", kMegabyte);
  // Many tokens that are prefixes of one long token.
  std::vector<text::AddedToken> tokens = {added(0, repeated("a", 200000) + "0")};
  for (std::uint32_t i = 1; i < 100000; ++i) tokens.push_back(added(i, "a" + std::to_string(i)));
  const text::AddedMatcher many(tokens);
  DOCTEST_CHECK(found_by(many, letters) == "[" + letters + "]");
  DOCTEST_CHECK(found_by(many, letters + "0") == "[" + letters.substr(200000) + "]0;");
  DOCTEST_CHECK(many.touches(letters + "0", kMegabyte / 2) == false);
  DOCTEST_CHECK(many.touches(letters + "0", kMegabyte));
  const std::string spaces = repeated(" ", kMegabyte);
  std::size_t found = 0;
  for (const bool left : {false, true})
    for (const bool right : {false, true}) {
      text::AddedToken space = added(7, " ");
      space.lstrip = left;
      space.rstrip = right;
      text::AddedMatcher({space}).each(
          spaces, [](std::string_view) {}, [&](std::uint32_t) { ++found; });
    }
  // As in tokenizers: the first that includes both sides leaves the others nothing.
  DOCTEST_CHECK(found == 3 * kMegabyte + 1);
}

DOCTEST_TEST_CASE("bounds: a file of many added tokens is read in a time that grows with it") {
  core::Json json = core::parse_json(sample::file("pipelines/qwen2.json"), "qwen2");
  const core::Json like = json["added_tokens"].back();
  std::uint32_t id = 0;
  for (const auto& token : json["added_tokens"])
    id = std::max(id, token["id"].get<std::uint32_t>());
  const std::uint32_t first = id + 1;
  for (std::size_t i = 0; i < 50000; ++i) {
    core::Json token = like;
    token["id"] = ++id;
    token["content"] = "<a" + std::to_string(i) + ">";
    token["special"] = false;
    json["added_tokens"].push_back(token);
  }
  const auto tokenizer = text::parse_tokenizer(core::dump(json), "x.json");
  DOCTEST_CHECK(tokenizer->encode("<a0><a49999>") == Ids{first, first + 49999});
  DOCTEST_CHECK(tokenizer->remark().empty());
  DOCTEST_CHECK(tokenizer->json().size() > 50000);
  // An id one higher: the file's id is kept, with a note.
  json["added_tokens"].back()["id"] = id + 1;
  const auto gap = text::parse_tokenizer(core::dump(json), "x.json");
  DOCTEST_CHECK(gap->encode("<a49999>") == Ids{id + 1});
  DOCTEST_CHECK(gap->remark() == "added token <a49999> has id " + std::to_string(id + 1) +
                                     " as in the file; Hugging Face's tokenizers would give it " +
                                     std::to_string(id));
  // A template of that many tokens is refused.
  core::Json single = core::Json::array();
  for (int i = 0; i < 2000; ++i)
    single.push_back({{"SpecialToken", {{"id", "<a7>"}, {"type_id", 0}}}});
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  json["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}};
  const auto error = thrown([&] { text::parse_tokenizer(core::dump(json), "x.json"); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names("1024 tokens around a text"));
}
