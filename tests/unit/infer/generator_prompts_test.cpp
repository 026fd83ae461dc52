// Prompts from lines and JSON lines.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "infer/generate/generator_prompts.h"
#include "unit/thrown.h"

namespace {

using Texts = std::vector<std::string>;

// Returns all prompts of a file with this content.
Texts prompts(const std::string& content, const std::string& format, std::size_t most = 3,
    const std::string& suffix = "") {
  const std::string path = "/tmp/tessera-prompts." + std::to_string(::getpid()) + suffix;
  std::ofstream(path) << content;
  infer::PromptReader reader(path, format, "prompt");
  ::unlink(path.c_str());
  Texts all;
  for (auto some = reader.next(most); !some.empty(); some = reader.next(most)) {
    DOCTEST_REQUIRE(some.size() <= most);
    for (const auto& prompt : some) all.push_back(prompt.text);
  }
  return all;
}

// Returns the prompt of a JSON line.
infer::Prompt prompt_of(const std::string& line) {
  const std::string path = "/tmp/tessera-prompt." + std::to_string(::getpid());
  std::ofstream(path) << line;
  infer::PromptReader reader(path, "jsonl", "prompt");
  ::unlink(path.c_str());
  return reader.next(1).at(0);
}

Texts texts_of(const std::vector<infer::Prompt>& prompts) {
  Texts texts;
  for (const auto& prompt : prompts) texts.push_back(prompt.text);
  return texts;
}

}  // namespace

DOCTEST_TEST_CASE("every line is a prompt, the empty and the last one too") {
  DOCTEST_CHECK(prompts("a b\n\nc", "lines") == Texts{"a b", "", "c"});
  DOCTEST_CHECK(prompts("a\nb\nc\nd\ne\n", "auto") == Texts{"a", "b", "c", "d", "e"});
  DOCTEST_CHECK(prompts("", "lines").empty());
  DOCTEST_CHECK(prompts("\n", "lines") == Texts{""});
  const std::string bytes = "\xFF\xFE{\"prompt\"}";
  const auto error = thrown([&] { prompts(bytes + "\n", "lines"); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names("byte 0: UTF-16"));
  const std::string wide(200000, 'x');
  DOCTEST_CHECK(prompts(wide + "\ny\n", "lines", 1) == Texts{wide, "y"});
}

DOCTEST_TEST_CASE("JSON lines give a member; what is none is named with its line") {
  const std::string two = "{\"prompt\": \"a\\nb\", \"x\": 1}\n\n  \n{\"prompt\": \"\\u00e9\"}";
  DOCTEST_CHECK(prompts(two, "jsonl") == Texts{"a\nb", "\xC3\xA9"});
  DOCTEST_CHECK(prompts(two, "auto", 3, ".jsonl") == Texts{"a\nb", "\xC3\xA9"});
  DOCTEST_CHECK(prompts(two, "lines").size() == 4);
  for (const char* bad : {"{\"prompt\": \"a\"}\n{\"text\": \"b\"}", "{\"prompt\": \"a\"}\n[1",
           "{\"prompt\": \"a\"}\n{\"prompt\": 3}"}) {
    const auto error = thrown([&] { prompts(bad, "jsonl"); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(":2"));
  }
  DOCTEST_CHECK(
      thrown([] { infer::PromptReader("/nowhere/at/all", "auto", "prompt"); }).code == 66);
}

DOCTEST_TEST_CASE("a JSON line may say how its own texts are written; null is absent") {
  const auto own = prompt_of(
      R"({"prompt": "p", "id": {"b": [1], "a": 12345678901234567890123}, "max_tokens": 3, "stop": ["x", "yz"], "temperature": 0, "seed": 7})");
  DOCTEST_CHECK(own.text == "p");
  DOCTEST_CHECK(*own.id == R"({"b": [1], "a": 12345678901234567890123})");
  DOCTEST_CHECK(own.max_tokens == 3);
  DOCTEST_CHECK(own.stop == Texts{"x", "yz"});
  DOCTEST_CHECK(own.temperature == 0.0);
  DOCTEST_CHECK(own.seed == 7);
  DOCTEST_CHECK(prompt_of(R"({"prompt": "p", "stop": "x"})").stop == Texts{"x"});
  const auto none = prompt_of(
      R"({"prompt": "p", "id": null, "max_tokens": null, "stop": null, "temperature": null})");
  DOCTEST_CHECK(!none.id);
  DOCTEST_CHECK(!none.max_tokens);
  DOCTEST_CHECK(!none.stop);
  DOCTEST_CHECK(!none.temperature);
  DOCTEST_CHECK(!none.seed);
  for (const std::string member :
      {R"("max_tokens": 0)", R"("max_tokens": "3")", R"("max_tokens": 1.5)", R"("stop": "")",
          R"("stop": [1])", R"("stop": {})", R"("temperature": -1)", R"("temperature": "hot")",
          R"("seed": -1)", R"("seed": 99999999999999999999)"}) {
    const auto error = thrown([&] { prompt_of(R"({"prompt": "p", )" + member + "}"); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(":1: " + member.substr(1, member.find('"', 1) - 1)));
  }
}

DOCTEST_TEST_CASE("given prompts are handed out in order") {
  infer::PromptReader reader(Texts{"a", "b", "c"});
  DOCTEST_CHECK(texts_of(reader.next(2)) == Texts{"a", "b"});
  DOCTEST_CHECK(texts_of(reader.next(2)) == Texts{"c"});
  DOCTEST_CHECK(reader.next(2).empty());
}

DOCTEST_TEST_CASE("a prompt of the command line, or a file, never both") {
  infer::PromptOptions options;
  options.prompts = {"a", ""};
  DOCTEST_CHECK(texts_of(options.open({}, "model").next(3)) == Texts{"a", ""});
  options.file = "/nowhere/at/all";
  DOCTEST_CHECK(thrown([&] { options.open({}, "model"); }).code == 64);
  options.prompts.clear();
  const auto error = thrown([&] { options.open({}, "model"); });
  DOCTEST_CHECK(error.code == 66);
  DOCTEST_CHECK(error.names("use --prompt for a prompt as text"));
}
