#pragma once
// Generates RULER's needles in a haystack: key-value pairs in a text, and questions about some
// keys.

#include "core/options.h"
#include "task/ruler.h"

namespace task {

/// A NeedleShape says which needles there are.
struct NeedleShape {
  std::int64_t keys = 1;     ///< number of keys with values in the text
  std::int64_t values = 1;   ///< number of values per key
  std::int64_t queries = 1;  ///< number of keys asked for
  std::string key_kind = "words", value_kind = "numbers";
  void fields(core::FieldList& f);
};

/// A NeedleTask draws such problems. A part of filler is a line of noise, a needle of another key,
/// or a sentence.
class NeedleTask : public RulerTask {
 public:
  enum class Haystack { noise, needles, sentences };
  /// `sentences` are the filler of the haystack of sentences and are used in order from the first.
  /// Throws Error{usage} if more keys are asked for than exist.
  NeedleTask(const NeedleShape& shape, Haystack haystack, std::vector<std::string> sentences);
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;

 private:
  std::string drawn(const std::string& kind, core::Rng& rng) const;

  NeedleShape shape_;
  Haystack haystack_;
  std::vector<std::string> sentences_;
  std::vector<std::string> nouns_, adjectives_;  ///< for keys and values that are words
};

/// Splits a text into sentences, each up to a full stop, question mark or exclamation mark followed
/// by white space; white space becomes one space. Throws Error{bad_data} if there is none.
std::vector<std::string> sentences_of(std::string_view text, const std::string& origin);

}  // namespace task
