#pragma once
// Prompts that ask a language model for short stories that differ (after Zhang et al. 2024, section
// 5: BabiStories; the words are required as in Eldan & Li 2023, TinyStories).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.h"

namespace task {

inline constexpr std::array<std::string_view, 6> kStoryFeatures = {
    "dialogue", "moral", "twist", "conflict", "bad ending", "foreshadowing"};

/// What the parts of a prompt are drawn from, each uniformly. None is empty.
struct StoryParts {
  std::vector<std::string> nouns, verbs, adjectives, names;
  std::vector<std::string> openings;  ///< first words of a story, without an end
};

/// Lists of this project's own.
StoryParts default_story_parts();

/// One word a line after its kind: "noun WORD", "verb WORD", "adjective WORD", between them a space
/// or a tab. Empty lines and those that begin with # are passed over. Throws Error{bad_data}
/// naming `origin` and the line, or the kind without a word.
void read_story_words(std::string_view text, const std::string& origin, StoryParts& parts);

/// A name a line; what stands before ". " (the number of a list) is cut. Names longer than 7 bytes
/// and repetitions are dropped. Throws Error{bad_data} if none is left.
std::vector<std::string> read_first_names(std::string_view text, const std::string& origin);

/// An opening a line, numbered or not. Of each line all beginnings of 1 to 12 words are kept,
/// without full stops and ellipses, each once. Throws Error{bad_data} if none is left.
std::vector<std::string> read_openings(std::string_view text, const std::string& origin);

/// One prompt with its parts; views into the StoryParts.
struct StoryPrompt {
  std::string_view noun, verb, adjective, name, opening;
  std::vector<std::string_view> features;  ///< one to three, in the order of kStoryFeatures
  /// What the model is asked; the story is to go on from the opening.
  std::string instruction() const;
};

/// The `number`-th prompt of a seed: any of them can be made without the others.
StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number);

}  // namespace task
