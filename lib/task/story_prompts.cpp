#include "task/story_prompts.h"

namespace task {
namespace {

template <class List>
std::string_view drawn(const List& list, core::Rng& rng) {
  return list[rng.below(list.size())];
}

}  // namespace

StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number) {
  core::Rng rng(seed, number);
  StoryPrompt prompt;
  prompt.noun = drawn(parts.nouns, rng);
  prompt.verb = drawn(parts.verbs, rng);
  prompt.adjective = drawn(parts.adjectives, rng);
  prompt.name = drawn(parts.names, rng);
  prompt.opening = drawn(parts.openings, rng);
  const auto count = 1 + rng.below(3);
  unsigned chosen = 0;
  while (static_cast<std::uint64_t>(__builtin_popcount(chosen)) < count)
    chosen |= 1U << rng.below(kStoryFeatures.size());
  for (std::size_t i = 0; i < kStoryFeatures.size(); ++i)
    if ((chosen >> i & 1U) != 0) prompt.features.push_back(kStoryFeatures[i]);
  return prompt;
}

std::string StoryPrompt::instruction(OpeningIn place) const {
  std::string text =
      "Tell a story of three to five short paragraphs that a small child understands, "
      "in simple words only. Use the character name \"";
  text.append(name).append("\", the verb \"").append(verb).append("\", the noun \"").append(noun);
  text.append("\" and the adjective \"").append(adjective).append("\".");
  for (const auto feature : features) {
    if (feature == "dialogue") text += " The characters talk with each other.";
    if (feature == "moral") text += " The story teaches something, without saying what.";
    if (feature == "twist") text += " Something happens that nobody expects.";
    if (feature == "conflict") text += " The characters want different things.";
    if (feature == "bad ending") text += " The story ends badly.";
    if (feature == "foreshadowing") text += " Early on there is a hint of what comes later.";
  }
  text += " Write nothing but the story";
  if (place == OpeningIn::answer) return text + ".";
  text += ", and go on from its first words: ";
  text.append(opening);
  return text;
}

std::string names_question() {
  return "Write down 100 first names that children can have, no two of them alike. Make it a "
         "numbered list with one name a line, and add nothing to it.";
}

std::string openings_question(std::uint64_t number) {
  std::string text = "Think of 100 ways in which a story for children can begin.";
  if (number % 2 == 1) text += " Let no two of them start with the same word.";
  text += " Make it a numbered list with one beginning a line, and add nothing to it.";
  return text;
}

}  // namespace task
