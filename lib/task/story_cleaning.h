#pragma once
// Extracts stories from the output of a language model: cuts what follows the story and drops what
// is not a plain story (after Zhang et al. 2024, section 5: BabiStories).
// Lists characters that do not occur in a plain story.
// Defines the bytes that form words.

#include <cctype>

#include "task/story_prompts.h"

namespace task {

/// A CleanStory is the result for one text.
struct CleanStory {
  std::string text;     ///< empty if the text was dropped
  std::string dropped;  ///< the reason, or empty: "url", "character (", "empty", "short"
  /// The marker it was cut at, in lower case, or empty: "moral:", "the end", "user 1:".
  std::string cut;
};

/// A StoryQuestion is what a text answers.
struct StoryQuestion {
  std::string prompt = {};   ///< removed from the start of a text that repeats it
  std::string opening = {};  ///< put before a text that does not repeat it
};

/// Cleans one text. Cuts it at the first marker that begins a line or a sentence ("Moral:", "The
/// end", "User 2:"). Replaces each run of white space by one space. Drops a text with an address, a
/// markup character, or fewer than `least_words` words. All rules apply to the text with its
/// opening, except that a text of only white space stays empty.
CleanStory clean_story(
    std::string_view text, const StoryQuestion& question, std::int64_t least_words);

/// A StoryTally counts the stories of a collection.
struct StoryTally {
  std::uint64_t read = 0, kept = 0;
  std::uint64_t words = 0, characters = 0;  ///< of the stories kept; characters of UTF-8
  std::map<std::string, std::uint64_t> dropped, cut;
  void add(const CleanStory& story);

  /// Returns read, kept, words, characters, words_per_story, characters_per_story, dropped, cut.
  core::OrderedJson figures() const;
  std::vector<std::string> lines() const;  ///< returns the figures as readable lines
};

/// A StoryFile holds the options of a file's format and of the selection.
struct StoryFile {
  std::string format = "jsonl";  ///< jsonl, openai (the answers to a batch), text
  std::string field = "story", prompt_field = "prompt";
  std::string opening_field;  ///< jsonl; empty: stories have no separate opening
  std::string requests;       ///< openai: the batch file; empty: stories have no separate opening
  std::string separator = "<|endoftext|>";  ///< text: between stories
  std::int64_t least_words = 20;
  void fields(core::FieldList& f);

  /// Throws Error{usage} for a text format without a separator and for options of another format.
  void check() const;
};

/// Cleans each story of `source` and passes it to `take`; skips empty lines and pieces. `openings`
/// are those of the requests, for openai. Throws Error{bad_data}, naming file and line, for a line
/// of another format, a missing opening_field, and an answer without a request.
void clean_stories(core::ByteSource& source, const StoryFile& file, const AnswerOpenings& openings,
    const std::function<void(const CleanStory&)>& take);

/// Markup characters. A story with one of them is dropped; an opening ends before the word that has
/// one.
inline constexpr std::string_view kStoryMarkup = "[]{}()*#<>%^/@+\\|=_~`$&";

/// Returns true for the byte of an ASCII letter or digit, and of any character beyond ASCII.
inline bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80U;
}

}  // namespace task
