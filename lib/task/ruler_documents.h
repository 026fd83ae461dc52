#pragma once
// Generates RULER's questions about one of many unrelated documents.

#include "task/ruler.h"

namespace task {

/// A DocumentSet holds existing documents with questions.
struct DocumentSet {
  struct Question {
    std::string text;
    std::vector<std::string> answers;  ///< alternatives, each of them correct
    std::size_t document;              ///< index of the document that has the answer
  };
  std::vector<std::string> documents;
  std::vector<std::size_t> article;  ///< article of each document; documents of one article are
                                     ///< related
  std::vector<Question> questions;
};

/// Reads a file of SQuAD (Rajpurkar et al. 2016, 2018; RULER uses dev-v2.0.json of
/// rajpurkar.github.io): its distinct paragraphs and the questions that have an answer. Ignores
/// unused members. Throws Error{bad_data} for another format and for a file without questions.
DocumentSet read_squad(std::string_view text, const std::string& origin);

/// An AnyAnswerTask has alternative answers; a right model writes the first.
class AnyAnswerTask : public RulerTask {
 public:
  std::string answer_of(const RulerProblem& problem) const override {
    return " " + problem.answers.front();
  }
};

/// A DocumentTask asks questions of a DocumentSet. Each part of filler is one more document: first
/// those of the answer's article, then any. Problem n asks the n-th question in an order that the
/// seed determines; after the last question the order restarts.
class DocumentTask : public AnyAnswerTask {
 public:
  explicit DocumentTask(DocumentSet set);
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;
  std::int64_t most_filling() const override { return std::ssize(set_.documents) - 1; }

 private:
  DocumentSet set_;
};

/// A MadeDocumentTask asks about invented people, ships and towns, so that only the text can give
/// the answer. Each part of filler is one more document.
class MadeDocumentTask : public AnyAnswerTask {
 public:
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;
};

}  // namespace task
