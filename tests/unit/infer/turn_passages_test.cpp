// Passages in the last turn of a conversation.

#include "infer/windows/retriever.h"

#include <numeric>

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

// The words of the notes that are terms, with their terms.
const std::vector<std::vector<std::pair<std::string, std::string>>> kTermsOfNotes = {
    {{"boiler", "boiler"}, {"hums", "hum"}, {"March", "march"}},
    {{"boiler", "boiler"}, {"shed", "shed"}, {"leaks", "leak"}},
    {{"long", "long"}, {"letter", "letter"}, {"may", "mai"}, {"wait", "wait"}},
    {{"green", "green"}, {"shed", "shed"}, {"locked", "lock"}}};

/// Vectors of words by their bytes.
struct Bytes {
  torch::Tensor table = torch::randn({256, 4});
  std::vector<double> vector_of(std::string_view word) const {
    const auto rows = table.accessor<float, 2>();
    std::vector<double> vector(4, 0.0);
    double square = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      for (const char c : word)
        vector[j] +=
            static_cast<double>(rows[static_cast<unsigned char>(c)][static_cast<std::int64_t>(j)]);
      square += vector[j] * vector[j];
    }
    for (auto& x : vector) x /= std::sqrt(square);
    return vector;
  }
  double cosine(std::string_view a, std::string_view b) const {
    const auto u = vector_of(a), v = vector_of(b);
    return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
  }
  decltype(infer::TurnModel::words) words() const {
    return [this](const std::vector<std::string_view>& words) {
      torch::Tensor all = torch::empty({std::ssize(words), 4});
      for (std::size_t i = 0; i < words.size(); ++i)
        all[static_cast<std::int64_t>(i)] = torch::tensor(vector_of(words[i]), torch::kFloat32);
      return all;
    };
  }
};

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
  const auto [messages, found] = turned({}, text::user_turn("Does the boiler hum?"));
  DOCTEST_CHECK(messages.back().at("content") ==
                "Notes:\nThe boiler hums in March.\nThe boiler of the shed leaks.\n\n"
                "Does the boiler hum?\nAnswer with the sentence of the notes that says it.");
  DOCTEST_REQUIRE(found.size() == 2);
  DOCTEST_CHECK(found[0].at("passage") == 0);
  DOCTEST_CHECK(found[1].at("document") == 1);
}

DOCTEST_TEST_CASE("turn passages: of the candidates, those after which the turn is most probable") {
  std::map<std::string, double> gains = {
      {kNotesOfTurns[0], 2}, {kNotesOfTurns[1], 5}, {kNotesOfTurns[2], 4.5}, {kNotesOfTurns[3], 4}};
  infer::TurnOptions options;
  std::string asked;
  options.model->gains = [&](const std::string& turn, const std::vector<std::string>& texts) {
    asked = turn;
    return core::mapped(texts, [&](const std::string& text) { return gains.at(text); });
  };
  const auto found = [&](const std::string& turn) {
    return core::mapped(turned(options, text::user_turn(turn)).passages,
        [](const auto& passage) { return passage.at("passage").template get<int>(); });
  };
  const std::string turn = "boiler boiler hums, shed, letter";  // BM25: 0, 1, 2, 3
  DOCTEST_CHECK(found(turn) == std::vector{1, 2, 3});
  DOCTEST_CHECK(asked == turn);
  options.within = 0.5;
  DOCTEST_CHECK(found(turn) == std::vector{1, 2});
  options.k = 1;
  DOCTEST_CHECK(found(turn) == std::vector{1});
  options.candidates = 1;
  DOCTEST_CHECK(found(turn) == std::vector{0});
  options.k = 2;  // more than candidates
  DOCTEST_CHECK(found(turn) == std::vector{1});
  options = infer::TurnOptions();
  options.model->gains = [](const auto&, const auto&) { return std::vector<double>(); };
  DOCTEST_CHECK(found(turn) == std::vector{0, 1, 2});  // the model cannot say
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
  const auto begun = turned({}, answered).messages;  // the answer that the model continues
  DOCTEST_CHECK(begun[0].at("content").get<std::string>().starts_with("Notes:\nThe boiler"));
  DOCTEST_CHECK(begun[1] == answered[1]);
  answered.erase(0);
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

DOCTEST_TEST_CASE("turn passages: none is used if none has enough evidence") {
  torch::manual_seed(5);
  const auto index = index_of_notes();
  const Bytes bytes;
  double gain = 0;
  const auto found = [&](const std::string& question, double evidence, bool compares = true) {
    infer::TurnOptions options;
    options.evidence = evidence;
    if (compares) options.model->words = bytes.words();
    options.model->gains = [&](const auto&, const std::vector<std::string>& texts) {
      return std::vector<double>(texts.size(), gain);
    };
    const infer::TurnPassages passages(index.path, 0, options);
    auto messages = text::user_turn(question);
    auto list = passages.put_into(messages);
    DOCTEST_CHECK((messages == text::user_turn(question)) == list.empty());
    return list;
  };
  // The words that are searched for, with their terms and how many notes have them.
  struct Word {
    std::string text, term;
    double notes;
  };
  const std::vector<std::pair<std::string, std::vector<Word>>> asked = {
      {"How green is the painter's shed?",
          {{"green", "green", 1}, {"painter's", "painter", 0}, {"shed", "shed", 2}}},
      {"Who Locks sheds in June?",
          {{"Locks", "lock", 1}, {"sheds", "shed", 2}, {"June", "june", 0}}},
      {"Where do Zebras wait?", {{"Zebras", "zebra", 0}, {"wait", "wait", 1}}}};
  for (const auto& [question, words] : asked) {
    const auto list = found(question, 0);
    DOCTEST_REQUIRE(!list.empty());
    double best = 0;
    for (const auto& passage : list) {
      double covered = 0, all = 0;
      const auto& note = kTermsOfNotes[passage.at("passage").get<std::size_t>()];
      for (const auto& word : words) {
        double c = 0;
        for (const auto& [text, term] : note)
          c = std::max(c, term == word.term ? 1.0 : bytes.cosine(word.text, text));
        const double idf = std::log(1 + (4 - word.notes + 0.5) / (word.notes + 0.5));
        covered += idf * c, all += idf;
      }
      best = std::max(best, covered / all);
    }
    DOCTEST_REQUIRE(best < 0.999);
    DOCTEST_CHECK(found(question, best - 1e-5) == list);
    DOCTEST_CHECK(found(question, best + 1e-5).empty());
    DOCTEST_CHECK(found(question, 1, false) == list);
    gain = 5;  // counts for 5 / 25
    DOCTEST_CHECK(found(question, best + 0.2 - 1e-5) == list);
    DOCTEST_CHECK(found(question, best + 0.2 + 1e-5).empty());
    gain = 0;
  }
  DOCTEST_CHECK(found("Is the green shed locked?", 1).size() > 0);
}

DOCTEST_TEST_CASE("turn passages: words opposite to all of a passage cover nothing") {
  const auto index = index_of_notes();
  const auto found = [&](double evidence) {
    infer::TurnOptions options;
    options.evidence = evidence;
    options.model->words = [](const std::vector<std::string_view>& words) {
      const auto rows = torch::ones({std::ssize(words), 1});
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i] == "zzz") rows[static_cast<std::int64_t>(i)] = -1;
      return rows;
    };
    const infer::TurnPassages passages(index.path, 0, options);
    auto messages = text::user_turn("zzz letter");
    return passages.put_into(messages).size();
  };
  const double letter = std::log(1 + 3.5 / 1.5), other = std::log(1 + 4.5 / 0.5);
  DOCTEST_CHECK(found(letter / (letter + other) - 1e-5) == 1);
  DOCTEST_CHECK(found(letter / (letter + other) + 1e-5) == 0);
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
