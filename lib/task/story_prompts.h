#pragma once
// Prompts that ask a language model for short stories that differ (after Zhang et al. 2024, section
// 5: BabiStories; the words are required as in Eldan & Li 2023, TinyStories).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.h"
#include "task/story_openings.h"

namespace task {

inline constexpr std::array<std::string_view, 6> kStoryFeatures = {
    "dialogue", "moral", "twist", "conflict", "bad ending", "foreshadowing"};

/// What the parts of a prompt are drawn from, each uniformly. None is empty.
struct StoryParts {
  std::vector<std::string> nouns, verbs, adjectives, names;
  StoryOpenings openings;  ///< first words of a story, without an end
};

/// Lists of this project's own.
StoryParts default_story_parts();

/// One word a line after its kind: "noun WORD", "verb WORD", "adjective WORD", between them a space
/// or a tab. Empty lines and those that begin with # are passed over. Throws Error{bad_data}
/// naming `origin` and the line, or the kind without a word.
void read_story_words(std::string_view text, const std::string& origin, StoryParts& parts);

/// A name a line. The number of a list ("12. ", "12) ") is cut, and so are quotation marks and
/// asterisks around the name; where most lines are numbered the others are none of the list. Names
/// longer than 7 characters and repetitions are dropped. Throws Error{bad_data} if none is left.
std::vector<std::string> read_first_names(std::string_view text, const std::string& origin);

/// An opening a line, which numbers and marks are cut from in the same way. Of each all beginnings
/// of 1 to 12 words are kept, without full stops and ellipses, each once; a word with a character
/// of markup is in none. Throws Error{bad_data} if none is left.
StoryOpenings read_openings(std::string_view text, const std::string& origin);

/// What asks a model for a list that read_first_names() reads: always the same, for what is drawn
/// of the model differs.
std::string names_question();

/// What asks a model for a list that read_openings() reads, in two wordings by turns: odd ones also
/// ask for first words that differ.
std::string openings_question(std::uint64_t number);

/// Where the opening of a story stands: what the model is asked ends with it, or it is the
/// beginning of the answer, which the model can only go on with.
enum class OpeningIn { instruction, answer };

/// One prompt with its parts; views into the StoryParts.
struct StoryPrompt {
  std::string_view noun, verb, adjective, name, opening;
  std::vector<std::string_view> features;  ///< one to three, in the order of kStoryFeatures
  /// What the model is asked, with the opening at its end or without it.
  std::string instruction(OpeningIn place = OpeningIn::instruction) const;
};

/// The `number`-th prompt of a seed: any of them can be made without the others.
StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number);

}  // namespace task
