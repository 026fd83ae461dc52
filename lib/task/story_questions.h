#pragma once
// Writes the questions of gen-babistories-prompts according to options.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/options.h"
#include "task/story_prompts.h"

namespace task {

/// StoryQuestionOptions says what is asked and how it is written.
struct StoryQuestionOptions {
  std::int64_t n = 1000, first = 0;
  std::string ask = "story", words, names, openings, opening_in = "instruction", form = "json";
  std::string request = "none", model;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  void fields(core::FieldList& f);
  /// Throws Error{usage} for options that cannot be combined.
  void check() const;
};

/// Returns the parts of stories: the lists that the options name, else our own. Lists may be
/// compressed. Throws as the functions that read them do.
StoryParts story_parts(const StoryQuestionOptions& options);

/// Returns question `number` of a seed, without a newline: JSON with its parts, only the text, or a
/// request of a chat-completion batch.
std::string story_question(const StoryQuestionOptions& options, const StoryParts& parts,
                           std::int64_t seed, std::int64_t number);

}  // namespace task
