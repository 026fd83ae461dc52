#pragma once
// Generates prompts that ask a language model for short, varied stories (after Zhang et al. 2024,
// section 5: BabiStories; required words as in Eldan & Li 2023, TinyStories).
// Holds the beginnings of lines, from which openings are drawn.
// Writes the requests of a batch of chat completions, and reads the openings of their answers.
// Writes the questions of gen-babistories-prompts according to options.

#include "core/hash.h"
#include "core/io.h"
#include "core/options.h"
#include "core/rng.h"

namespace task {

/// StoryOpenings holds the beginnings of lines: for "One cold day" these are "One", "One cold" and
/// "One cold day". They share the line's text and take 8 bytes each in addition.
class StoryOpenings {
 public:
  StoryOpenings() = default;
  /// Takes the lines and lists the beginnings of each, shortest first, except those that an earlier
  /// line has. Each word of a line must be followed by one space. There may be at most 2^32 lines,
  /// each shorter than 4 GiB.
  explicit StoryOpenings(std::vector<std::string> lines);

  bool empty() const { return beginnings_.empty(); }
  std::size_t size() const { return beginnings_.size(); }
  /// Returns a view of a beginning without its last space.
  std::string_view operator[](std::size_t i) const {
    return std::string_view(lines_[beginnings_[i].line]).substr(0, beginnings_[i].bytes);
  }

 private:
  struct Beginning {
    std::uint32_t line, bytes;
  };
  std::vector<std::string> lines_;
  std::vector<Beginning> beginnings_;
};

inline constexpr std::array<std::string_view, 6> kStoryFeatures = {
    "dialogue", "moral", "twist", "conflict", "bad ending", "foreshadowing"};

/// StoryParts holds the lists from which the parts of a prompt are drawn uniformly. No list is
/// empty.
struct StoryParts {
  std::vector<std::string> nouns, verbs, adjectives, names;
  StoryOpenings openings;  ///< first words of a story, unfinished
};

/// Our own lists: words, and openings, one a line.
extern const std::string_view kNouns, kVerbs, kAdjectives, kNames, kOpenings;
/// Returns them.
StoryParts default_story_parts();

/// Reads lines "noun WORD", "verb WORD" or "adjective WORD", separated by a space or a tab. Skips
/// empty lines and lines that begin with #. Throws Error{bad_data}, naming `origin` and the line,
/// or the kind that has no word.
void read_story_words(std::string_view text, const std::string& origin, StoryParts& parts);

/// Reads one name per line. Removes list numbers ("12. ", "12) "), and quotation marks and
/// asterisks around the name; if most lines are numbered, ignores the others. Drops names longer
/// than 7 characters and duplicates. Throws Error{bad_data} if none is left.
std::vector<std::string> read_first_names(std::string_view text, const std::string& origin);

/// Reads one opening per line and removes numbers and marks as read_first_names() does. Keeps the
/// distinct beginnings of 1 to 12 words of each, without full stops and ellipses; words with a
/// markup character are excluded. Throws Error{bad_data} if none is left.
StoryOpenings read_openings(std::string_view text, const std::string& origin);

/// Returns the question for a list that read_first_names() reads. It is constant; the variety comes
/// from the model's sampling.
std::string names_question();

/// Returns the question for a list that read_openings() reads, alternately in two wordings; odd
/// ones also ask for varied first words.
std::string openings_question(std::uint64_t number);

/// OpeningIn says where a story's opening is: at the end of the instruction, or at the beginning of
/// the answer, which forces the model to continue it.
enum class OpeningIn { instruction, answer };

/// A StoryPrompt is one prompt; its parts are views into the StoryParts.
struct StoryPrompt {
  std::string_view noun, verb, adjective, name, opening;
  std::vector<std::string_view> features;  ///< one to three, in the order of kStoryFeatures
  /// Returns the instruction, with or without the opening at its end.
  std::string instruction(OpeningIn place = OpeningIn::instruction) const;
};

/// Returns prompt `number` of a seed; each prompt is independent of the others.
StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number);

/// A StoryRequest is a line of a batch file. `begun` is the beginning of the answer, which is the
/// last message and has the assistant's role; empty: the answer has none.
struct StoryRequest {
  std::string id, model, instruction, begun;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  core::OrderedJson json() const;
};

/// AnswerOpenings maps the custom_id of each request to the opening of its answer: if the last
/// message of a request is the assistant's, the answer continues it. Takes 24 bytes per request,
/// and each distinct opening once.
class AnswerOpenings {
 public:
  /// Represents a file without requests: no answer has an opening.
  AnswerOpenings() = default;
  /// Reads a batch file. Throws Error{bad_data}, naming file and line for an invalid request, or
  /// the file for a custom_id with two openings.
  explicit AnswerOpenings(core::ByteSource& requests);
  AnswerOpenings(AnswerOpenings&&) = delete;

  /// Returns the opening of an answer, a line of the server's output; empty if it has none. Throws
  /// Error{bad_data}, with `origin` in front, if no request has its custom_id.
  const std::string& of(const core::Json& answer, const std::string& origin) const;

 private:
  struct Request {
    core::Digest id;
    const std::string* opening;  // points into distinct_
  };
  void sort();

  std::string file_;  // empty: no requests
  std::unordered_set<std::string> distinct_;
  std::vector<Request> requests_;  // by id
};

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
