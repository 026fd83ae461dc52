// Passages in the last turn of a conversation.

#include "infer/windows/retriever.h"

#include "retrieved_text.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

const std::vector<std::string> kNotesOfTurns = {"The boiler hums in March.",
    "The boiler of the shed leaks.", "A long letter may wait.", "The green shed is locked."};

retrieved::Index index_of_notes() {
  tiny::Text text;
  text.vocabulary = 256;
  for (const auto& note : kNotesOfTurns) text.documents.emplace_back(note.begin(), note.end());
  return retrieved::Index(text, 0);
}

struct Turned {
  core::OrderedJson messages, passages;
  std::string last() const { return messages.back().at("content").get<std::string>(); }
};

Turned turned(
    const infer::TurnOptions& options, core::OrderedJson messages, std::int64_t tokens = 0) {
  const auto index = index_of_notes();
  const infer::TurnPassages passages(index.path, tokens, options);
  auto found = passages.put_into(messages);
  return {messages, found};
}

}  // namespace

DOCTEST_TEST_CASE("turn passages: the best passages precede the last question") {
  infer::TurnOptions options;
  options.least = 0;
  const auto [messages, found] = turned(options, text::user_turn("Does the boiler hum?"));
  DOCTEST_CHECK(messages.back().at("content") ==
                "Notes:\nThe boiler hums in March.\nThe boiler of the shed leaks.\n\n"
                "Does the boiler hum?\nAnswer with the sentence of the notes that says it.");
  DOCTEST_REQUIRE(found.size() == 2);
  DOCTEST_CHECK(found[0].at("passage") == 0);
  DOCTEST_CHECK(found[1].at("document") == 1);
}

DOCTEST_TEST_CASE("turn passages: passages far below the best, or beyond k, are left out") {
  infer::TurnOptions options;
  options.least = 1;
  DOCTEST_CHECK(turned(options, text::user_turn("boiler hums")).passages.size() == 1);
  options.least = 0, options.k = 1;
  DOCTEST_CHECK(turned(options, text::user_turn("boiler hums")).passages.size() == 1);
}

DOCTEST_TEST_CASE("turn passages: words of any question are not searched for") {
  infer::TurnOptions options;
  const std::string how = "How long may I wait for what?";
  DOCTEST_CHECK(turned(options, text::user_turn(how)).passages.size() == 1);
  const auto none = turned(options, text::user_turn("How long may it be?"));
  DOCTEST_CHECK(none.passages.empty());
  DOCTEST_CHECK(none.last() == "How long may it be?");
}

DOCTEST_TEST_CASE("turn passages: earlier turns stay") {
  const auto conversation = core::parse_ordered_json(R"([
    {"role": "user", "content": "Is the boiler loud?"}, {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Is the shed green?"}])",
      "test");
  const auto made = turned({}, conversation);
  DOCTEST_CHECK(made.messages[0] == conversation[0]);
  DOCTEST_CHECK(made.last().starts_with("Notes:\nThe green shed is locked.\n"));
  DOCTEST_CHECK(made.last().find("\nIs the shed green?\n") != std::string::npos);
  auto answered = conversation;
  answered.erase(2);
  DOCTEST_CHECK(turned({}, answered).messages == answered);
}

DOCTEST_TEST_CASE("turn passages: a template of one's own, and short passages") {
  const TemporaryFolder folder;
  infer::TurnOptions options;
  options.form = folder.file("form", "{{ question }} {{ passages | length }}: {{ passages[0] }}");
  DOCTEST_CHECK(turned(options, text::user_turn("green"), 9).last() == "green 1: The green");
  folder.file("form", "{{ question");
  const auto fault = thrown([&] { turned(options, text::user_turn("green")); });
  DOCTEST_CHECK(fault.names(options.form));
}

DOCTEST_TEST_CASE("turn passages: options of windows and of chats exclude each other") {
  infer::RetrieveOptions retrieve;
  infer::TurnOptions options;
  const auto refused = [&](bool chat, const std::string& named) {
    return thrown([&] { options.settle(retrieve, chat); }).names("--" + named + ": ");
  };
  options.k = 4;
  DOCTEST_CHECK(refused(true, "retrieve-k"));
  const auto index = index_of_notes();
  retrieve.index = index.path;
  DOCTEST_CHECK(refused(false, "retrieve-k"));
  retrieve.every = 8, retrieve.tokens = 20;
  DOCTEST_CHECK(refused(true, "retrieve-every"));
  retrieve.every = infer::RetrieveOptions().every, options.k = infer::TurnOptions().k;
  DOCTEST_CHECK(options.settle(retrieve, false) == nullptr);
  DOCTEST_CHECK(options.settle(retrieve, true) != nullptr);
  DOCTEST_CHECK(!retrieve.any());
}
