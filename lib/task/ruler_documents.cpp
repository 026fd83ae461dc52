// Documents of invented facts: one fact per line, each with its question.

#include "task/ruler_documents.h"

namespace task {
namespace {

constexpr std::uint64_t kOrderStream = std::uint64_t{1} << 63;  // of questions

using core::Json;

const Json& list_in(const Json& object, const char* key, const std::string& origin) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_array())
    core::bad_data("{}: not in SQuAD's format: it has no list \"{}\"", origin, key);
  return object[key];
}

void read_questions(const Json& paragraph, std::size_t document, const std::string& origin,
    std::vector<DocumentSet::Question>& questions) {
  for (const auto& asked : list_in(paragraph, "qas", origin)) {
    DocumentSet::Question question{core::get<std::string>(asked, "question", origin), {}, document};
    for (const auto& answer : list_in(asked, "answers", origin)) {
      auto text = core::get<std::string>(answer, "text", origin);
      if (!text.empty() && !core::contains(question.answers, text))
        question.answers.push_back(std::move(text));
    }
    if (!question.answers.empty()) questions.push_back(std::move(question));
  }
}

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

constexpr std::string_view kTrades[] = {
    "baker", "clockmaker", "weaver", "farrier", "cooper", "printer", "glazier", "tailor"};

std::string with(std::string_view text, std::string_view subject, std::string_view value) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "{}") made += subject, ++i;
    else if (text.substr(i, 2) == "[]") made += value, ++i;
    else made += text[i];
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
    return task::fresh(used_, [this] { return made_name(rng_); });
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
      case Drawn::name: value = names.fresh(); break;
      case Drawn::year: value = std::to_string(1500 + rng.below(450)); break;
      case Drawn::count: value = std::to_string(100 + rng.below(9900)); break;
      case Drawn::trade: value = kTrades[rng.below(std::size(kTrades))]; break;
    }
    if (!document.text.empty()) document.text += ' ';
    document.text += with(fact.sentence, subject, value);
    if (!fact.question.empty())
      document.asked.emplace_back(with(fact.question, subject, value), value);
  }
  return document;
}

// Returns the prompt of a question about documents in the given order.
std::string document_prompt(const std::vector<std::string>& documents, std::string_view question) {
  std::string text =
      "Read these documents, then answer the question behind them in a few words of theirs, "
      "with nothing added.\n\n";
  for (std::size_t i = 0; i < documents.size(); ++i)
    text += fmt::format("Document {}:\n{}\n\n", i + 1, documents[i]);
  return text + fmt::format("Question: {}\nAnswer:", question);
}

}  // namespace

DocumentSet read_squad(std::string_view text, const std::string& origin) {
  const auto json = core::parse_json(text, origin);
  DocumentSet set;
  std::unordered_map<std::string, std::size_t> known;
  std::size_t article = 0;
  for (const auto& part : list_in(json, "data", origin)) {
    for (const auto& paragraph : list_in(part, "paragraphs", origin)) {
      auto context = core::get<std::string>(paragraph, "context", origin);
      const auto [at, first] = known.emplace(context, set.documents.size());
      if (first) {
        set.documents.push_back(std::move(context));
        set.article.push_back(article);
      }
      read_questions(paragraph, at->second, origin, set.questions);
    }
    ++article;
  }
  if (set.questions.empty()) core::bad_data("{}: has no question with an answer", origin);
  return set;
}

DocumentTask::DocumentTask(DocumentSet set) : set_(std::move(set)) {}

RulerProblem DocumentTask::draw(
    std::uint64_t seed, std::uint64_t number, std::int64_t filling) const {
  auto order = core::generated(set_.questions.size(), std::identity());
  core::Rng(seed, kOrderStream).shuffle(order);
  const auto& question = set_.questions[order[number % order.size()]];

  core::Rng rng(seed, number);
  std::vector<std::size_t> near, far;
  for (std::size_t i = 0; i < set_.documents.size(); ++i) {
    if (i == question.document) continue;
    (set_.article[i] == set_.article[question.document] ? near : far).push_back(i);
  }
  rng.shuffle(near);
  rng.shuffle(far);
  near.insert(near.end(), far.begin(), far.end());
  near.resize(static_cast<std::size_t>(std::min<std::int64_t>(filling, std::ssize(near))));
  near.push_back(question.document);
  rng.shuffle(near);
  const auto documents = core::mapped(near, [&](std::size_t i) { return set_.documents[i]; });
  return {document_prompt(documents, question.text), question.answers};
}

RulerProblem MadeDocumentTask::draw(
    std::uint64_t seed, std::uint64_t number, std::int64_t filling) const {
  core::Rng rng(seed, number);
  Names names(rng);
  const auto asked = made_document(names, rng);
  const auto& [question, answer] = asked.asked[rng.below(asked.asked.size())];
  auto documents = core::generated(filling, [&](auto) { return made_document(names, rng).text; });
  return {document_prompt(strewn(std::move(documents), {asked.text}, rng), question), {answer}};
}

}  // namespace task
