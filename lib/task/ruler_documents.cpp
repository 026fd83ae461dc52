#include "task/ruler_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"

namespace task {
namespace {

constexpr std::uint64_t kOrderStream = std::uint64_t{1} << 63;  // of questions

using core::Json;

const Json& list_in(const Json& object, const char* key, const std::string& origin) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_array())
    core::fail(core::Code::bad_data, "{}: not in SQuAD's format: it has no list \"{}\"", origin,
               key);
  return object[key];
}

void read_questions(const Json& paragraph, std::size_t document, const std::string& origin,
                    std::vector<DocumentSet::Question>& questions) {
  for (const auto& asked : list_in(paragraph, "qas", origin)) {
    DocumentSet::Question question{core::get<std::string>(asked, "question", origin), {}, document};
    for (const auto& answer : list_in(asked, "answers", origin)) {
      auto text = core::get<std::string>(answer, "text", origin);
      const bool known = std::find(question.answers.begin(), question.answers.end(), text) !=
                         question.answers.end();
      if (!text.empty() && !known) question.answers.push_back(std::move(text));
    }
    if (!question.answers.empty()) questions.push_back(std::move(question));
  }
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
  if (set.questions.empty())
    core::fail(core::Code::bad_data, "{}: has no question with an answer", origin);
  return set;
}

DocumentTask::DocumentTask(DocumentSet set) : set_(std::move(set)) {}

std::int64_t DocumentTask::most_filling() const { return std::ssize(set_.documents) - 1; }

RulerProblem DocumentTask::draw(std::uint64_t seed, std::uint64_t number,
                                std::int64_t filling) const {
  std::vector<std::size_t> order(set_.questions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
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
  std::vector<std::string> documents;
  for (const auto i : near) documents.push_back(set_.documents[i]);
  return {document_prompt(documents, question.text), question.answers};
}

std::string document_prompt(const std::vector<std::string>& documents, std::string_view question) {
  std::string text =
      "Read these documents, then answer the question behind them in a few words of theirs, "
      "with nothing added.\n\n";
  for (std::size_t i = 0; i < documents.size(); ++i)
    text += fmt::format("Document {}:\n{}\n\n", i + 1, documents[i]);
  return text + fmt::format("Question: {}\nAnswer:", question);
}

}  // namespace task
