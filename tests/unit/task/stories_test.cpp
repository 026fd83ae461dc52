// Prompts for stories, and what is cut and dropped from answers.

#include <doctest/doctest.h>

#include "task/story_cleaning.h"
#include "unit/thrown.h"

namespace {

task::CleanStory cleaned(std::string_view text) { return task::clean_story(text, {}, 3); }

/// Returns all openings that prompts draw from, in order.
std::vector<std::string> openings(std::string_view text) {
  const auto list = task::read_openings(text, "o");
  std::vector<std::string> all;
  for (std::size_t i = 0; i < list.size(); ++i) all.emplace_back(list[i]);
  return all;
}

/// Returns the cleaned answer that continues an opening.
std::string continued(const std::string& opening, std::string_view answer) {
  return task::clean_story(answer, {.opening = opening}, 1).text;
}

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
    const auto clause = " the character name \"" + std::string(prompt.name) + "\", the verb \"" +
                        std::string(prompt.verb) + "\", ";
    DOCTEST_REQUIRE(text.find(clause) != std::string::npos);
    const auto bare = prompt.instruction(task::OpeningIn::answer);
    DOCTEST_REQUIRE(bare.ends_with(" Write nothing but the story."));
    DOCTEST_REQUIRE(bare.substr(0, bare.size() - 1) == text.substr(0, bare.size() - 1));
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
  task::read_story_words(
      "# words\nnoun\tcat\nverb jump\n\nadjective red\nnoun big dog\n", "w", parts);
  DOCTEST_CHECK(parts.nouns == std::vector<std::string>{"cat", "big dog"});
  DOCTEST_CHECK(thrown([&] {
    task::read_story_words("noun cat\nadverb soon\n", "w", parts);
  }).text == "w:2: 'adverb soon' is not 'noun WORD', 'verb WORD' or 'adjective WORD'");
  DOCTEST_CHECK(thrown([&] { task::read_story_words("noun cat\nverb go\n", "w", parts); }).text ==
                "w: has no adjective");
  DOCTEST_CHECK(task::read_first_names("1. Anna\n2. Bo\nAnna\nMaximilian\n", "n") ==
                std::vector<std::string>{"Anna", "Bo"});
  DOCTEST_CHECK(openings("1. Once upon a time...\nOnce more.\n") ==
                std::vector<std::string>{
                    "Once", "Once upon", "Once upon a", "Once upon a time", "Once more"});
  DOCTEST_CHECK(thrown([] { openings("...\n"); }).text == "o: has no opening");
}

DOCTEST_TEST_CASE("lists as models answer: numbered in several ways, wrapped, with chatter") {
  const auto names = [](std::string_view text) { return task::read_first_names(text, "n"); };
  using Strings = std::vector<std::string>;
  DOCTEST_CHECK(
      names("Sure: \n\n 1.  Anna\r\n2) Bo\n3.Cleo\n4. \n5. **Dan**\n6. \"Eve\"\nEnjoy!\n") ==
      Strings{"Anna", "Bo", "Cleo", "Dan", "Eve"});
  // Several answers in sequence; letters count, not bytes.
  DOCTEST_CHECK(names("A list:\n1. Zo\u00eb\n2. Am\u00e9lie\u00e9\nHere:\n1. Zo\u00eb\n2. "
                      "\u00c9lodie-Zo\u00eb\n") == Strings{"Zo\u00eb", "Am\u00e9lie\u00e9"});
  // A plain list in which few lines have a number keeps all lines.
  DOCTEST_CHECK(names("Anna\nBo\n1. Cleo\n") == Strings{"Anna", "Bo", "Cleo"});
  DOCTEST_CHECK(openings("Here are ways:\n1. \"One day...\"\n2. \u201cOne night\u2026\u201d\n") ==
                Strings{"One", "One day", "One night"});
  DOCTEST_CHECK(openings("3.5 mice\n\"Hi,\" he said. \"Go.\"") ==
                Strings{"35", "35 mice", "\"Hi,\"", "\"Hi,\" he", "\"Hi,\" he said",
                    "\"Hi,\" he said \"Go\""});
  DOCTEST_CHECK(openings("1. a b c d e f g h i j k l m n").size() == 12);
  DOCTEST_CHECK(thrown([&] { names("Some names:\n1. Maximilian\n2.\n"); }).text ==
                "n: has no name of at most 7 letters");
}

DOCTEST_TEST_CASE("items of lists lose the quotation marks around them, whatever kind they are") {
  using Strings = std::vector<std::string>;
  DOCTEST_CHECK(task::read_first_names("'Anna'\n\u2018Bo\u2019\n\u00abCleo\u00bb\n\u00ab Dan "
                                       "\u00bb\n\u201eEve\u201c\n*'Fay'*\nD'Arcy\n'Gus\n",
                    "n") == Strings{"Anna", "Bo", "Cleo", "Dan", "Eve", "Fay", "D'Arcy", "'Gus"});
  // An apostrophe opens no quotation.
  DOCTEST_CHECK(openings("'It's'") == Strings{"It's"});
  DOCTEST_CHECK(openings("'Hi,' said 'Bo'") == Strings{"'Hi,'", "'Hi,' said", "'Hi,' said 'Bo'"});
}

DOCTEST_TEST_CASE("lists may begin with a byte order mark") {
  using Strings = std::vector<std::string>;
  DOCTEST_CHECK(task::read_first_names("\xEF\xBB\xBF"
                                       "1. Anna\n2. Bo\n",
                    "n") == Strings{"Anna", "Bo"});
  DOCTEST_CHECK(openings("\xEF\xBB\xBFOnce\n") == Strings{"Once"});
  task::StoryParts parts;
  task::read_story_words("\xEF\xBB\xBFnoun cat\nverb go\nadjective red\n", "w", parts);
  DOCTEST_CHECK(parts.nouns == Strings{"cat"});
}

DOCTEST_TEST_CASE("openings end before markup, which stories are dropped for") {
  using Strings = std::vector<std::string>;
  DOCTEST_CHECK(openings("1. In a *dark* wood\n2. One day [name] ran\n3. In a #box\n") ==
                Strings{"In", "In a", "One", "One day"});
  DOCTEST_CHECK(
      openings("1. **One night**\n2. Tom & Anna\n") == Strings{"One", "One night", "Tom"});
  DOCTEST_CHECK(thrown([] { openings("[name] ran\n"); }).text == "o: has no opening");
}

DOCTEST_TEST_CASE("openings are what a list of all beginnings has, each once, in its order") {
  core::Rng rng(5, 0);
  const char* const words[] = {"a", "a-b", "ab", "a\x01", "b", "\u00e9"};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    std::vector<std::string> all;
    for (auto lines = 1 + rng.below(12); lines > 0; --lines) {
      std::string line;
      for (auto left = 1 + rng.below(5); left > 0; --left) {
        line += (line.empty() ? "" : " ") + std::string(words[rng.below(std::size(words))]);
        if (std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
      }
      text += line + "\n";
    }
    DOCTEST_REQUIRE(openings(text) == all);
  }
}

DOCTEST_TEST_CASE("lists are asked for in lines that are numbered, openings in two wordings") {
  const auto plain = task::openings_question(0), differing = task::openings_question(1);
  for (const auto& text : {task::names_question(), plain, differing}) {
    DOCTEST_CHECK(text.find("100") != std::string::npos);
    DOCTEST_CHECK(text.find("numbered list") != std::string::npos);
  }
  DOCTEST_CHECK(plain.find("same word") == std::string::npos);
  DOCTEST_CHECK(differing.find("same word") != std::string::npos);
  DOCTEST_CHECK(task::openings_question(6) == plain);
  DOCTEST_CHECK(task::openings_question(7) == differing);
}

DOCTEST_TEST_CASE("a story has its opening, once") {
  DOCTEST_CHECK(continued("One day", " a cat sat.") == "One day a cat sat.");
  DOCTEST_CHECK(continued("One day", "\n\na cat sat.") == "One day a cat sat.");
  DOCTEST_CHECK(continued("One day", "a cat sat.") == "One day a cat sat.");
  DOCTEST_CHECK(continued("The cat", "'s tail, and") == "The cat's tail, and");
  for (const auto* const rest : {"t go.", "re in.", "ll go.", "ve it", "d go.", "m in.", "S.", ""})
    DOCTEST_CHECK(continued("They", std::string("'") + rest) == std::string("They'") + rest);
  DOCTEST_CHECK(continued("He said,", "'Hello'") == "He said, 'Hello'");
  DOCTEST_CHECK(continued("He said,", "'Dear me'") == "He said, 'Dear me'");
  DOCTEST_CHECK(continued("He said,", "'t\u00e9l\u00e9'") == "He said, 't\u00e9l\u00e9'");
  DOCTEST_CHECK(continued("'Yes,", "' he said.") == "'Yes,' he said.");
  DOCTEST_CHECK(continued("One day", ", a cat sat.") == "One day, a cat sat.");
  DOCTEST_CHECK(continued("He said", "\"Yes.\"") == "He said \"Yes.\"");
  DOCTEST_CHECK(continued("\"Yes", "\" he said.") == "\"Yes\" he said.");
  DOCTEST_CHECK(continued("One day", "\nOne  day a cat sat.") == "One day a cat sat.");
  DOCTEST_CHECK(continued("One day", "One day") == "One day");
  // Another word with the same beginning is no repetition.
  DOCTEST_CHECK(continued("The", "There was a cat.") == "The There was a cat.");
  DOCTEST_CHECK(continued("", "A cat sat.") == "A cat sat.");
  DOCTEST_CHECK(task::clean_story(" \n", {.opening = "One day"}, 1).dropped == "empty");
  // The beginning of the answer is not the beginning of a sentence.
  DOCTEST_CHECK(continued("She wrote a", " note: come home.") == "She wrote a note: come home.");
  DOCTEST_CHECK(continued("One day", " a cat sat.\nMoral: sit.") == "One day a cat sat.");
  // The prompt comes first, then the opening that follows it.
  DOCTEST_CHECK(task::clean_story("Go on: One day it came.", {"Go on:", "One day"}, 1).text ==
                "One day it came.");
}

DOCTEST_TEST_CASE("openings of answers, out of the requests") {
  const auto request = [](const std::string& id, const std::string& last) {
    return R"({"custom_id":")" + id + R"(","body":{"messages":[{"role":"user","content":"Go"})" +
           last + "]}}\n";
  };
  const auto opened = [&](const std::string& id, const std::string& opening) {
    return request(id, R"(,{"role":"assistant","content":")" + opening + "\"}");
  };
  const auto read = [](const std::string& text) {
    core::MemorySource source(text, "batch");
    return task::AnswerOpenings(source);
  };
  const auto of = [](const task::AnswerOpenings& openings, const std::string& id) {
    return openings.of({{"custom_id", id}}, "answers:3");
  };
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += opened("s-" + std::to_string(i), "Day " + std::to_string(i % 7));
  const auto openings = read(many + "\n" + request("whole", "") + opened("s-5", "Day 5"));
  for (int i = 0; i < 300; ++i)
    DOCTEST_REQUIRE(of(openings, "s-" + std::to_string(i)) == "Day " + std::to_string(i % 7));
  DOCTEST_CHECK(of(openings, "whole").empty());
  DOCTEST_CHECK(of(task::AnswerOpenings(), "s-1").empty());
  DOCTEST_CHECK(thrown([&] { of(openings, "s-300"); }).text ==
                "answers:3: its custom_id occurs in no request of batch: 's-300'");
  DOCTEST_CHECK(thrown([&] {
    read(many + opened("s-5", "Night"));
  }).text.starts_with("batch: two requests, with '"));
  DOCTEST_CHECK(thrown([&] { read(many + "{}\n"); }).text == "batch:301: has no \"custom_id\"");
  DOCTEST_CHECK(thrown([&] { read(R"({"custom_id":"a","body":{"messages":7}})"); }).text ==
                "batch:1: \"messages\" has the wrong type");
}

DOCTEST_TEST_CASE("stories lose what follows them") {
  DOCTEST_CHECK(cleaned("A cat sat.\n\nIt slept.\n\nMoral: rest.").text == "A cat sat. It slept.");
  DOCTEST_CHECK(cleaned("A cat sat. The End!\nNote: this is simple.").text == "A cat sat.");
  DOCTEST_CHECK(cleaned("A cat sat.\nUser 12: more").cut == "user");
  DOCTEST_CHECK(cleaned("They met at the end of the road. The end of the day came.").cut.empty());
  DOCTEST_CHECK(cleaned("She wrote a note: come home soon.").cut.empty());
  DOCTEST_CHECK(task::clean_story("Go on: A cat sat down.", {.prompt = "Go on: "}, 3).text ==
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
    task::clean_stories(source, file, {}, [&](const auto& story) { tally.add(story); });
    return tally;
  };
  task::StoryFile file;
  file.least_words = 3;
  const std::string lines =
      "\"A cat sat down.\"\n\n{\"story\": "
      "\"A dog ran off. The end\", \"prompt\": \"A\"}\n\"Too short\"\n";
  const auto tally = clean(lines, file);
  DOCTEST_CHECK(tally.read == 3);
  DOCTEST_CHECK(tally.kept == 2);
  DOCTEST_CHECK(tally.dropped.at("short") == 1);
  DOCTEST_CHECK(tally.cut.at("the end") == 1);
  DOCTEST_CHECK(tally.figures()["words"] == tally.words);
  DOCTEST_CHECK(tally.lines()[0].starts_with("2 of 3 stories kept, "));
  DOCTEST_CHECK(tally.lines().size() == 3);
  DOCTEST_CHECK(thrown([&] { clean("\"fine words here\"\n{]\n", file); }).names("file:2"));
  file.opening_field = "opening";
  const auto begun = clean("{\"story\": \" sat down.\", \"opening\": \"A cat\"}\n", file);
  DOCTEST_CHECK(begun.kept == 1);
  DOCTEST_CHECK(begun.words == 4);
  for (const auto* const line : {"\"A cat sat down.\"", "{\"story\": \"A cat sat down.\"}"})
    DOCTEST_CHECK(thrown([&] { clean(line, file); }).text == "file:1: has no \"opening\"");
  file.format = "text", file.separator = "##";
  DOCTEST_CHECK(thrown([&] { file.check(); }).code == 64);
  file.opening_field.clear();
  DOCTEST_CHECK(clean("A cat sat.## \n##A dog ran off.", file).kept == 2);
  file.requests = "batch";
  DOCTEST_CHECK(thrown([&] { file.check(); }).code == 64);
  file.requests.clear(), file.separator.clear();
  DOCTEST_CHECK(thrown([&] { file.check(); }).code == 64);
  file.format = "openai";
  const auto answers = clean(
      "{\"custom_id\":\"1\",\"response\":{\"body\":{\"choices\":[{\"message\":{\"content\":\"A "
      "cat sat down.\"}}]}}}\n{\"custom_id\":\"2\"}\n",
      file);
  DOCTEST_CHECK(answers.kept == 1);
  DOCTEST_CHECK(answers.dropped.at("no answer") == 1);
}
