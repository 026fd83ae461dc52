// Prompts for stories, and what is cut and dropped of the answers.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "task/story_cleaning.h"
#include "task/story_prompts.h"
#include "unit/thrown.h"

namespace {

task::CleanStory cleaned(std::string_view text) { return task::clean_story(text, {}, 3); }

}  // namespace

DOCTEST_TEST_CASE("a prompt holds all its parts, and its number alone decides it") {
  const auto parts = task::default_story_parts();
  std::set<std::string> all;
  std::map<std::string_view, int> features;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto prompt = task::story_prompt(parts, 7, i);
    const auto text = prompt.instruction();
    for (const auto part : {prompt.noun, prompt.verb, prompt.adjective, prompt.name})
      DOCTEST_REQUIRE(text.find("\"" + std::string(part) + "\"") != std::string::npos);
    DOCTEST_REQUIRE(text.ends_with(prompt.opening));
    DOCTEST_REQUIRE(prompt.features.size() >= 1);
    DOCTEST_REQUIRE(prompt.features.size() <= 3);
    for (const auto feature : prompt.features) ++features[feature];
    all.insert(text);
  }
  DOCTEST_CHECK(all.size() == 2000);
  for (const auto feature : task::kStoryFeatures)  // two of six on average
    DOCTEST_CHECK(features[feature] == doctest::Approx(2000 / 3.0).epsilon(.15));
  DOCTEST_CHECK(task::story_prompt(parts, 7, 5).instruction() ==
                task::story_prompt(parts, 7, 5).instruction());
  DOCTEST_CHECK(task::story_prompt(parts, 7, 5).instruction() !=
                task::story_prompt(parts, 8, 5).instruction());
}

DOCTEST_TEST_CASE("lists of words, names and openings") {
  task::StoryParts parts;
  task::read_story_words("# words\nnoun\tcat\nverb jump\n\nadjective red\nnoun big dog\n", "w",
                         parts);
  DOCTEST_CHECK(parts.nouns == std::vector<std::string>{"cat", "big dog"});
  DOCTEST_CHECK(
      thrown([&] { task::read_story_words("noun cat\nadverb soon\n", "w", parts); }).text ==
      "w:2: 'adverb soon' is none of 'noun WORD', 'verb WORD', 'adjective WORD'");
  DOCTEST_CHECK(thrown([&] { task::read_story_words("noun cat\nverb go\n", "w", parts); }).text ==
                "w: no adjective in it");
  DOCTEST_CHECK(task::read_first_names("1. Anna\n2. Bo\nAnna\nMaximilian\n", "n") ==
                std::vector<std::string>{"Anna", "Bo"});
  DOCTEST_CHECK(task::read_openings("1. Once upon a time...\nOnce more.\n", "o") ==
                std::vector<std::string>{"Once", "Once upon", "Once upon a", "Once upon a time",
                                         "Once more"});
  DOCTEST_CHECK(thrown([] { task::read_openings("...\n", "o"); }).text == "o: no opening in it");
}

DOCTEST_TEST_CASE("stories lose what follows them") {
  DOCTEST_CHECK(cleaned("A cat sat.\n\nIt slept.\n\nMoral: rest.").text == "A cat sat. It slept.");
  DOCTEST_CHECK(cleaned("A cat sat. The End!\nNote: this is simple.").text == "A cat sat.");
  DOCTEST_CHECK(cleaned("A cat sat.\nUser 12: more").cut == "user");
  DOCTEST_CHECK(cleaned("They met at the end of the road. The end of the day came.").cut.empty());
  DOCTEST_CHECK(cleaned("She wrote a note: come home soon.").cut.empty());
  DOCTEST_CHECK(task::clean_story("Go on: A cat sat down.", "Go on: ", 3).text ==
                "A cat sat down.");
}

DOCTEST_TEST_CASE("what is no plain story is dropped, with a reason that is counted") {
  task::StoryTally tally;
  for (const auto* const text : {"See www.example.org for more.", "A **bold** cat sat.", "",
                                 "Too short", "A brave caf\u00e9 cat sat."})
    tally.add(cleaned(text));
  DOCTEST_CHECK(tally.read == 5);
  DOCTEST_CHECK(tally.kept == 1);
  DOCTEST_CHECK(tally.words == 5);
  DOCTEST_CHECK(tally.characters == 21);
  DOCTEST_CHECK(tally.dropped == std::map<std::string, std::uint64_t>{
                                     {"url", 1}, {"character *", 1}, {"empty", 1}, {"short", 1}});
}

DOCTEST_TEST_CASE("stories out of each kind of file, counted") {
  const auto clean = [](const std::string& text, const task::StoryFile& file) {
    core::MemorySource source(text, "file");
    task::StoryTally tally;
    task::clean_stories(source, file, [&](const auto& story) { tally.add(story); });
    return tally;
  };
  task::StoryFile file;
  file.least_words = 3;
  const std::string lines =
      "\"A cat sat down.\"\n\n{\"story\": \"A dog ran off. The end\", \"prompt\": \"A\"}\n\"Too "
      "short\"\n";
  const auto tally = clean(lines, file);
  DOCTEST_CHECK(tally.read == 3);
  DOCTEST_CHECK(tally.kept == 2);
  DOCTEST_CHECK(tally.dropped.at("short") == 1);
  DOCTEST_CHECK(tally.cut.at("the end") == 1);
  DOCTEST_CHECK(tally.figures()["words"] == tally.words);
  DOCTEST_CHECK(tally.lines()[0].starts_with("2 of 3 stories kept, "));
  DOCTEST_CHECK(tally.lines().size() == 3);
  DOCTEST_CHECK(thrown([&] { clean("\"fine words here\"\n{]\n", file); }).names("file:2"));
  file.format = "text", file.separator = "##";
  DOCTEST_CHECK(clean("A cat sat.## \n##A dog ran off.", file).kept == 2);
  file.separator.clear();
  DOCTEST_CHECK(thrown([&] { file.check(); }).code == 64);
  file.format = "openai";
  const auto answers = clean(
      "{\"custom_id\":\"1\",\"response\":{\"body\":{\"choices\":[{\"message\":{\"content\":\"A cat "
      "sat down.\"}}]}}}\n{\"custom_id\":\"2\"}\n",
      file);
  DOCTEST_CHECK(answers.kept == 1);
  DOCTEST_CHECK(answers.dropped.at("no answer") == 1);
}
