// Documents of invented facts: one fact per line, each with its question.

#include <array>
#include <span>
#include <unordered_set>

#include "task/ruler_documents.h"

namespace task {
namespace {

enum class Drawn { name, year, count, trade };

/// {} is the document's subject. [] is drawn and is the answer.
struct Fact {
  Drawn what;
  std::string_view sentence, question;  ///< no question: every subject shares too few answers
};

constexpr Fact kPerson[] = {
    {Drawn::trade, "{} was a [] all life long.", ""},
    {Drawn::name, "The town of [] is where {} was born.", "In which town was {} born?"},
    {Drawn::year, "{} left home in [] and went to sea.", "In which year did {} leave home?"},
    {Drawn::name, "For many years {} worked for the house of [].", "For which house did {} work?"},
    {Drawn::name, "A parrot called [] went everywhere with {}.",
     "What was the parrot of {} called?"},
    {Drawn::count, "The library of {} held [] books.",
     "How many books did the library of {} hold?"},
};
constexpr Fact kShip[] = {
    {Drawn::name, "The ship {} was built in the yard of [].",
     "In whose yard was the ship {} built?"},
    {Drawn::year, "The {} first sailed in [].", "In which year did the {} first sail?"},
    {Drawn::trade, "Its first captain had been a [].", ""},
    {Drawn::name, "Captain [] lost the {} at cards.", "Which captain lost the {} at cards?"},
    {Drawn::count, "The {} carried [] barrels of salt.",
     "How many barrels of salt did the {} carry?"},
    {Drawn::name, "The bell of the {} hangs in [] now.", "Where does the bell of the {} hang now?"},
};
constexpr Fact kTown[] = {
    {Drawn::name, "The town of {} lies on the river [].",
     "On which river does the town of {} lie?"},
    {Drawn::count, "{} has [] houses with red roofs.", "How many houses of {} have red roofs?"},
    {Drawn::year, "A fire in [] spared only the mill of {}.",
     "In which year was there a fire in {}?"},
    {Drawn::trade, "Every second child of {} becomes a [].", ""},
    {Drawn::name, "The market of {} was founded by [].", "Who founded the market of {}?"},
    {Drawn::name, "The bridge of {} is named after [].", "After whom is the bridge of {} named?"},
};
constexpr std::array<std::span<const Fact>, 3> kKinds = {kPerson, kShip, kTown};

constexpr std::string_view kTrades[] = {"baker",  "clockmaker", "weaver",  "farrier",
                                        "cooper", "printer",    "glazier", "tailor"};

std::string with(std::string_view text, std::string_view subject, std::string_view value) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "{}")
      made += subject, ++i;
    else if (text.substr(i, 2) == "[]")
      made += value, ++i;
    else
      made += text[i];
  }
  return made;
}

struct Document {
  std::string text;
  std::vector<std::pair<std::string, std::string>> asked;  ///< questions, answers
};

/// Draws names that no other document has.
class Names {
 public:
  explicit Names(core::Rng& rng) : rng_(rng) {}
  std::string fresh() {
    for (;;)
      if (auto name = made_name(rng_); used_.insert(name).second) return name;
  }

 private:
  core::Rng& rng_;
  std::unordered_set<std::string> used_;
};

Document made_document(Names& names, core::Rng& rng) {
  const auto facts = kKinds[rng.below(kKinds.size())];
  const auto subject =
      facts.data() == kPerson ? names.fresh() + " " + names.fresh() : names.fresh();
  Document document;
  for (const auto& fact : facts) {
    std::string value;
    switch (fact.what) {
      case Drawn::name:
        value = names.fresh();
        break;
      case Drawn::year:
        value = std::to_string(1500 + rng.below(450));
        break;
      case Drawn::count:
        value = std::to_string(100 + rng.below(9900));
        break;
      case Drawn::trade:
        value = kTrades[rng.below(std::size(kTrades))];
        break;
    }
    if (!document.text.empty()) document.text += ' ';
    document.text += with(fact.sentence, subject, value);
    if (!fact.question.empty())
      document.asked.emplace_back(with(fact.question, subject, value), value);
  }
  return document;
}

}  // namespace

RulerProblem MadeDocumentTask::draw(std::uint64_t seed, std::uint64_t number,
                                    std::int64_t filling) const {
  core::Rng rng(seed, number);
  Names names(rng);
  const auto asked = made_document(names, rng);
  const auto& [question, answer] = asked.asked[rng.below(asked.asked.size())];
  std::vector<std::string> documents;
  for (std::int64_t i = 0; i < filling; ++i) documents.push_back(made_document(names, rng).text);
  return {document_prompt(strewn(std::move(documents), {asked.text}, rng), question), {answer}};
}

}  // namespace task
