// Requests: the members of each kind, errors in a line, and lines as they arrive.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "task/score_request.h"

namespace {

using Kind = task::ScoreRequest::Kind;

task::ScoreRequest parse(const std::string& line) {
  return task::parse_score_request(line, true, "f:3");
}

// A temporary file.
class File {
 public:
  explicit File(const std::string& text) {
    ::close(::mkstemp(path_.data()));
    std::ofstream(path_) << text;
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/tessera-requests.XXXXXX";
};

std::vector<task::ScoreRequest> read(
    const std::vector<std::string>& paths, const std::string& format = "auto") {
  task::ScoreRequestReader reader(paths, format);
  DOCTEST_CHECK(reader.regular());
  std::vector<task::ScoreRequest> all;
  while (auto request = reader.next()) all.push_back(std::move(*request));
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("the three kinds of requests, with ids of any kind") {
  const auto text = parse(R"({"text": "a b", "extra": {}})");
  DOCTEST_CHECK((text.kind == Kind::text && text.text == "a b" && !text.id && text.error.empty()));
  const auto continuation = parse(R"({"id": [1.5], "context": "", "continuation": " c"})");
  DOCTEST_CHECK(continuation.kind == Kind::continuation);
  DOCTEST_CHECK(*continuation.id == "[1.5]");
  DOCTEST_CHECK(continuation.continuations == std::vector<std::string>{" c"});
  const auto choices = parse(R"({"id": null, "context": "x", "choices": ["a", "b"], "gold": 1})");
  DOCTEST_CHECK((choices.kind == Kind::choices && choices.continuations.size() == 2));
  DOCTEST_CHECK((choices.gold == 1 && *choices.id == "null"));
  DOCTEST_CHECK(!parse(R"({"context": "x", "choices": ["a"], "gold": null})").gold);
}

DOCTEST_TEST_CASE(
    "a conversation stands in the place of a context, and a line says of special tokens") {
  const auto asked = parse(
      R"({"messages": [{"role": "user", "content": "a", "b": 1}], "continuation": "c", "special": true})");
  DOCTEST_CHECK(asked.error.empty());
  DOCTEST_CHECK(asked.kind == Kind::continuation);
  DOCTEST_CHECK(asked.messages == R"([{"role": "user", "content": "a", "b": 1}])");
  DOCTEST_CHECK(asked.special == true);
  DOCTEST_CHECK(parse(R"({"messages": [], "choices": ["c"]})").kind == Kind::choices);
  DOCTEST_CHECK_FALSE(parse(R"({"text": "c", "special": null})").special.has_value());
  DOCTEST_CHECK(parse(R"({"messages": []})").error ==
                R"(f:3: "messages" needs "continuation" or "choices"; give one)");
  DOCTEST_CHECK(parse(R"({"messages": [], "context": "c", "continuation": "d"})").error ==
                R"(f:3: "context" and "messages" exclude each other; give one)");
  DOCTEST_CHECK_FALSE(parse(R"({"messages": [], "text": "c"})").error.empty());
  DOCTEST_CHECK_FALSE(parse(R"({"text": "c", "special": 1})").error.empty());
}

DOCTEST_TEST_CASE("what is wrong is said with the place, and the id is kept") {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"([1])", "f:3: not a JSON object"},
      {R"({"id": 4})", R"(f:3: has neither "text" nor "context")"},
      {R"({"id": 4, "text": 1})", R"(f:3: "text" has the wrong type)"},
      {R"({"text": "a", "context": "b"})",
          R"(f:3: "text" cannot be combined with "context"; give one)"},
      {R"({"context": "b"})", R"(f:3: "context" needs "continuation" or "choices"; give one)"},
      {R"({"context": "b", "continuation": "a", "choices": ["a"]})",
          R"(f:3: "context" needs "continuation" or "choices"; give one)"},
      {R"({"context": "b", "choices": []})", "f:3: has no choices"},
      {R"({"context": "b", "choices": ["a"], "gold": 1})",
          R"(f:3: "gold" is 1, but the choices are 0 to 0)"},
      {R"({"context": "b", "choices": ["a", 2]})", R"(f:3: "choices" has the wrong type)"},
  };
  for (const auto& [line, error] : wrong) DOCTEST_CHECK(parse(line).error == error);
  DOCTEST_CHECK(*parse(R"({"id": 4})").id == "4");
  DOCTEST_CHECK(parse("{").error.rfind("f:3: ", 0) == 0);
}

DOCTEST_TEST_CASE(
    "members that are not asked for need only be JSON; of the others it is said what is wrong") {
  const auto wide = parse(
      R"({"id": 123456789012345678901234567890, "x": [1e999, "\ud800"], "\udfff": -1e999, "text": "a"})");
  DOCTEST_CHECK((wide.error.empty() && wide.text == "a"));
  DOCTEST_CHECK(*wide.id == "123456789012345678901234567890");
  DOCTEST_CHECK(*parse(R"({"id": "\ud800", "text": "a"})").id == R"("\ufffd")");
  DOCTEST_CHECK(
      parse("{\"text\": \"a\", \"x\": " + std::string(900, '[') + std::string(900, ']') + "}")
          .error.empty());
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"id": 7, "text": "\ud83d x"})", R"("text" has an unpaired surrogate)"},
      {R"({"id": 7, "context": "a", "choices": ["b", "\ude00"]})", R"("choices" has an unpaired)"},
      {R"({"id": 7, "text": "a", "x": NaN})", "NaN is not JSON"},
      {"{\"id\": 7, \"text\": \"\xe9\"}", "byte 19 (0xe9) is not UTF-8"},
  };
  for (const auto& [line, error] : wrong) {
    const auto request = parse(line);
    DOCTEST_CHECK(request.error.find(error) != std::string::npos);
    DOCTEST_CHECK((request.id && *request.id == "7"));
  }
  DOCTEST_CHECK(!parse(R"({"id": 7, "text": "a", "gold": 1e999, "context": ""})").error.empty());
}

DOCTEST_TEST_CASE("lines of text are UTF-8, and files what their names say") {
  const File latin("a\ncaf\xe9\nb");
  const auto all = read({latin.path()});
  DOCTEST_REQUIRE(all.size() == 3);
  DOCTEST_CHECK((all[0].error.empty() && all[2].error.empty()));
  DOCTEST_CHECK(all[1].error.find(latin.path() + ":2: byte 3 (0xe9)") == 0);
  task::ScoreRequestReader any({latin.path()}, "auto");
  any.take_any_bytes();
  for (int i = 0; i < 3; ++i) DOCTEST_CHECK(any.next()->error.empty());
  const std::string named = latin.path() + ".jsonl";
  std::ofstream(named) << "[{\"text\": \"a\"}]\n";
  DOCTEST_CHECK(read({named}, "lines").size() == 1);
  DOCTEST_CHECK_THROWS_AS(read({named}), core::Error);
  std::remove(named.c_str());
}

DOCTEST_TEST_CASE("files one after the other, each by what its first line begins with") {
  const File lines("a {\n\n{\"b\"}"), json(" {\"text\": \"c\"}\r\n\n{\"text\": \"d\"}");
  const auto all = read({lines.path(), json.path()});
  DOCTEST_REQUIRE(all.size() == 5);
  DOCTEST_CHECK((all[0].text == "a {" && all[1].text.empty() && all[2].text == "{\"b\"}"));
  DOCTEST_CHECK((all[3].text == "c" && all[4].text == "d"));
  DOCTEST_CHECK(all[2].origin == lines.path() + ":3");
  DOCTEST_CHECK(all[4].origin == json.path() + ":3");
  DOCTEST_CHECK(read({json.path()}, "lines").size() == 3);
  DOCTEST_CHECK(read({lines.path()}, "jsonl")[0].error.rfind(lines.path() + ":1: ", 0) == 0);
  // Empty lines do not determine the format of a file. They are texts if the file turns out to be
  // lines of text.
  const File late("\n \n{\"text\": \"e\"}"), text("\n\nf"), nothing("\n\n");
  DOCTEST_CHECK(read({late.path()})[0].text == "e");
  const auto three = read({text.path()});
  DOCTEST_REQUIRE(three.size() == 3);
  DOCTEST_CHECK((three[0].text.empty() && three[2].text == "f"));
  DOCTEST_CHECK(three[1].origin == text.path() + ":2");
  DOCTEST_CHECK(read({nothing.path(), json.path()}).size() == 4);
  DOCTEST_CHECK_THROWS_AS(task::ScoreRequestReader({"/nowhere"}, "auto"), core::Error);
}
