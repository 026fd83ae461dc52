#pragma once
// RULER's questions about one of many documents that have nothing to do with each other.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "task/ruler.h"

namespace task {

/// Documents that people wrote, with questions.
struct DocumentSet {
  struct Question {
    std::string text;
    std::vector<std::string> answers;  ///< each of them right
    std::size_t document;              ///< that has the answer
  };
  std::vector<std::string> documents;
  std::vector<std::size_t> article;  ///< of each document: those of one are alike
  std::vector<Question> questions;
};

/// A file of SQuAD (Rajpurkar et al. 2016, 2018; dev-v2.0.json of rajpurkar.github.io is RULER's):
/// its paragraphs, each once, and the questions that have an answer. Members that are not needed
/// are passed over. Throws Error{bad_data} if it has another form or no question.
DocumentSet read_squad(std::string_view text, const std::string& origin);

/// Filling is a further document: first those of the answer's article, then any. Problem n asks the
/// n-th question in an order that the seed draws, and from the first again where they end.
class DocumentTask : public RulerTask {
 public:
  explicit DocumentTask(DocumentSet set);
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;
  std::int64_t most_filling() const override;

 private:
  DocumentSet set_;
};

/// Documents about people, ships and towns that never were: what is asked can be known from the
/// text alone. Filling is a further document.
class MadeDocumentTask : public RulerTask {
 public:
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;
};

/// The prompt of a question about documents in this order.
std::string document_prompt(const std::vector<std::string>& documents, std::string_view question);

}  // namespace task
