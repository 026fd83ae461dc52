// Questions about long texts: how they are filled, and how answers are scored.

#include <doctest/doctest.h>

#include "task/ruler.h"
#include "task/ruler_documents.h"

namespace {

std::int64_t bytes(std::string_view text) { return std::ssize(text); }

/// Each part of the filling has the length of the last number.
class Bricks : public task::RulerTask {
 public:
  explicit Bricks(std::int64_t most) : most_(most) {}
  task::RulerProblem draw(std::uint64_t, std::uint64_t, std::int64_t filling) const override {
    return {"question" + std::string(static_cast<std::size_t>(10 * filling), '.'), {"a", "b"}};
  }
  std::int64_t most_filling() const override { return most_; }

 private:
  std::int64_t most_;
};

}  // namespace

DOCTEST_TEST_CASE("a problem has as much filling as fits, to the part") {
  const Bricks endless(1 << 20), few(7);
  for (const std::int64_t room : {8, 17, 18, 19, 27, 28, 108, 998, 9999}) {
    DOCTEST_CAPTURE(room);
    const auto made = task::fitted_problem(endless, {.tokens = room + 5, .answer = 5}, 1, 0, bytes);
    DOCTEST_CHECK(made.tokens == 8 + (room - 8) / 10 * 10);
    DOCTEST_CHECK(made.tokens == bytes(made.problem.prompt));
    const auto bounded = task::fitted_problem(few, {.tokens = room + 5, .answer = 5}, 1, 0, bytes);
    DOCTEST_CHECK(bounded.tokens == 8 + std::min<std::int64_t>(7, (room - 8) / 10) * 10);
  }
  DOCTEST_CHECK_THROWS_AS(
      task::fitted_problem(few, {.tokens = 12, .answer = 5}, 1, 0, bytes), core::Error);
  // " a, b" has five bytes.
  const auto longer = task::fitted_problem(endless, {.tokens = 33, .answer = 3}, 1, 0, bytes);
  DOCTEST_CHECK(longer.answer == 5);
  DOCTEST_CHECK(longer.tokens == 28);
  DOCTEST_CHECK(
      task::fitted_problem(endless, {.tokens = 33, .answer = 9}, 1, 0, bytes).answer == 9);
  DOCTEST_CHECK_THROWS_AS(task::fitted_problem(endless,
                              {.tokens = 33, .answer = 3, .longer_answers = false}, 1, 0, bytes),
      core::Error);
  const auto shown =
      task::fitted_problem(few, {.tokens = 500, .answer = 5, .shots = 2}, 1, 0, bytes);
  const auto shot = "question" + std::string(50, '.') + " a, b\n\n";
  DOCTEST_CHECK(shown.problem.prompt.starts_with(shot + shot + "question"));
}

DOCTEST_TEST_CASE("what is strewn keeps both orders, at places drawn evenly") {
  core::Rng rng(1);
  std::vector<std::size_t> first(5);
  for (int i = 0; i < 4000; ++i) {
    const auto all = task::strewn({"a", "b", "c", "d"}, {"X", "Y"}, rng);
    const auto place = [&](const char* part) {
      return std::find(all.begin(), all.end(), part) - all.begin();
    };
    DOCTEST_REQUIRE(all.size() == 6);
    DOCTEST_CHECK(place("a") < place("b"));
    DOCTEST_CHECK(place("c") < place("d"));
    DOCTEST_CHECK(place("X") < place("Y"));
    first[static_cast<std::size_t>(place("X"))] += 1;
  }
  // The smaller of two numbers from 0 to 4 is 0 in 9 of 25 draws, 1 in 7, ...
  for (std::size_t i = 0; i < 5; ++i)
    DOCTEST_CHECK(static_cast<double>(first[i]) ==
                  doctest::Approx(4000 * (9 - 2. * static_cast<double>(i)) / 25).epsilon(.2));
}

DOCTEST_TEST_CASE("every problem's answers stand in its prompt, however much filling there is") {
  const task::NeedleTask needles({.keys = 3, .values = 2, .queries = 2, .value_kind = "uuids"},
      task::NeedleTask::Haystack::noise, {});
  const task::VariableTask variables(2, 4);
  const task::MadeDocumentTask documents;
  for (const task::RulerTask* const asked : {static_cast<const task::RulerTask*>(&needles),
           static_cast<const task::RulerTask*>(&variables),
           static_cast<const task::RulerTask*>(&documents)}) {
    for (std::uint64_t number = 0; number < 30; ++number) {
      const auto bare = asked->draw(3, number, 0), full = asked->draw(3, number, 40);
      DOCTEST_CHECK(bare.answers == full.answers);
      DOCTEST_CHECK(full.prompt.size() > bare.prompt.size() + 1000);
      for (const auto& answer : full.answers)
        DOCTEST_CHECK(full.prompt.find(answer) < full.prompt.rfind("Question:"));
    }
  }
}

DOCTEST_TEST_CASE("answers count where they stand in what was said, in any case") {
  using task::ruler_score;
  DOCTEST_CHECK(ruler_score(" 12 and\t34", {"12", "34", "56"}, false) == doctest::Approx(2. / 3));
  DOCTEST_CHECK(ruler_score("in PARIS.", {"Paris", "the capital"}, true) == 1);
  DOCTEST_CHECK(ruler_score("in Rome", {"Paris"}, true) == 0);
  DOCTEST_CHECK(ruler_score("émile zola", {"Émile Zola"}, true) == 1);
  DOCTEST_CHECK(ruler_score("", {"x"}, false) == 0);
  DOCTEST_CHECK(task::ruler_said(" \n A\x01"
                                 "b\t ") == "a\nb");
}

DOCTEST_TEST_CASE("a text's sentences end where a mark and white space do") {
  const auto sentences = task::sentences_of(" Mr.  X came\nat 3.5! Why?No. \n", "f");
  DOCTEST_CHECK((sentences == std::vector<std::string>{"Mr.", "X came at 3.5!", "Why?No."}));
  DOCTEST_CHECK_THROWS_AS(task::sentences_of(" \n", "f"), core::Error);
}

DOCTEST_TEST_CASE("a document about what never was says every answer") {
  const task::MadeDocumentTask task;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const auto problem = task.draw(1, number, 0);
    const auto& prompt = problem.prompt;
    const auto text = prompt.substr(0, prompt.find("\n\nQuestion:"));
    const auto at = text.find(problem.answers.at(0));
    DOCTEST_CHECK(at != std::string::npos);
    DOCTEST_CHECK(prompt.find("[]") == std::string::npos);
    DOCTEST_CHECK(prompt.find("{}") == std::string::npos);
  }
}
