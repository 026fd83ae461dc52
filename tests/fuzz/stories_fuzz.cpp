// Any bytes give stories, openings of answers and lists, or an Error. A story that is kept is one
// line of words without markup.

#include <cstdlib>

#include "fuzz/target.h"
#include "task/story_cleaning.h"

namespace {

void expect_plain(const task::CleanStory& story) {
  if (story.text.empty() != !story.dropped.empty()) std::abort();
  if (story.text.find_first_of("\n\t[]{}<>*#") != std::string::npos) std::abort();
  if (story.text.find("  ") != std::string::npos) std::abort();
}

/// `read` may refuse the bytes only as bad data.
template <class Read> void try_to(const Read& read) {
  try {
    read();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}

void clean(
    std::string_view text, const task::StoryFile& file, const task::AnswerOpenings& openings) {
  try_to([&] {
    core::MemorySource source(text, "here");
    task::clean_stories(source, file, openings, expect_plain);
  });
}

void read_lists(std::string_view text) {
  try_to([&] {
    for (const auto& name : task::read_first_names(text, "here"))
      if (name.empty() || name.find('\n') != std::string::npos) std::abort();
  });
  try_to([&] {
    const auto openings = task::read_openings(text, "here");
    for (std::size_t i = 0; i < openings.size(); ++i)
      if (openings[i].empty() || openings[i].find_first_of(".\n") != std::string::npos ||
          openings[i].find_first_of(task::kStoryMarkup) != std::string::npos)
        std::abort();
  });
  try_to([&] {
    task::StoryParts parts;
    task::read_story_words(text, "here", parts);
  });
}

}  // namespace

FUZZ_TARGET(stories)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  task::StoryFile file;
  file.least_words = 1;
  for (const char* const format : {"jsonl", "openai", "text"}) {
    file.format = format;
    clean(text, file, {});
  }
  file.format = "jsonl", file.opening_field = "opening";
  clean(text, file, {});
  // A line may be both a request and its answer.
  file.format = "openai";
  try_to([&] {
    core::MemorySource source(text, "here");
    clean(text, file, task::AnswerOpenings(source));
  });
  read_lists(text);
}
