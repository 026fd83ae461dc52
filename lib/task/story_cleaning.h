#pragma once
// Stories out of what a language model wrote: what follows the story is cut, what is no plain story
// is dropped (after Zhang et al. 2024, section 5: BabiStories).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "core/options.h"
#include "task/story_requests.h"

namespace task {

/// What became of one text.
struct CleanStory {
  std::string text;     ///< empty if it was dropped
  std::string dropped;  ///< why, or empty: "url", "character (", "empty", "short"
  std::string cut;  ///< what it was cut at, in lower case, or empty: "moral:", "the end", "user 1:"
};

/// What a text answers.
struct StoryQuestion {
  std::string prompt = {};   ///< cut off the front of a text that repeats it
  std::string opening = {};  ///< put before a text that does not repeat it
};

/// Cuts `text` at the first marker that begins a line or a sentence ("Moral:", "The end", "User
/// 2:"), makes one space of blank lines and other white space, and drops texts with addresses or
/// with characters of markup, and those of fewer than `least_words` words. An opening stands
/// before the text in all of this; a text of nothing but white space stays empty.
CleanStory clean_story(std::string_view text, const StoryQuestion& question,
                       std::int64_t least_words);

/// Figures of a collection of stories.
struct StoryTally {
  std::uint64_t read = 0, kept = 0;
  std::uint64_t words = 0, characters = 0;  ///< of the kept; characters of UTF-8
  std::map<std::string, std::uint64_t> dropped, cut;
  void add(const CleanStory& story);

  /// read, kept, words, characters, words_per_story, characters_per_story, dropped, cut.
  core::OrderedJson figures() const;
  std::vector<std::string> lines() const;  ///< the same for the eye
};

/// How stories lie in a file, and which are kept, as options say it.
struct StoryFile {
  std::string format = "jsonl";  ///< jsonl, openai (the answers to a batch), text
  std::string field = "story", prompt_field = "prompt";
  std::string opening_field;                ///< jsonl; empty: stories begin by themselves
  std::string requests;                     ///< openai: the batch file; empty: the same
  std::string separator = "<|endoftext|>";  ///< text: between stories
  std::int64_t least_words = 20;
  void fields(core::FieldList& f);

  /// Throws Error{usage} for a text without a separator, and for what another format has.
  void check() const;
};

/// Gives each story of `source`, cleaned, to `take`; empty lines and pieces are passed over.
/// `openings` are those of the requests, for openai. Throws Error{bad_data} naming file and line
/// for what is not of the format, has no opening_field or answers none of the requests.
void clean_stories(core::ByteSource& source, const StoryFile& file, const AnswerOpenings& openings,
                   const std::function<void(const CleanStory&)>& take);

}  // namespace task
