// Any bytes give questions with answers about documents, or an Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "task/ruler_documents.h"

FUZZ_TARGET(squad)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto set = task::read_squad(text, "here");
    if (set.questions.empty() || set.article.size() != set.documents.size()) std::abort();
    for (const auto& question : set.questions)
      if (question.answers.empty() || question.document >= set.documents.size()) std::abort();
    const task::DocumentTask task(set);
    const auto problem = task.draw(1, 2, task.most_filling());
    if (problem.answers.empty() || problem.prompt.size() < set.documents.size()) std::abort();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
