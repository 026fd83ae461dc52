#pragma once
// RULER's needles in a haystack: values of keys, somewhere in a text, one of which is asked for.

#include <string>
#include <vector>

#include "core/options.h"
#include "task/ruler.h"

namespace task {

struct NeedleShape {
  std::int64_t keys = 1;     ///< that have values of their own in the text
  std::int64_t values = 1;   ///< of each key
  std::int64_t queries = 1;  ///< keys that are asked for
  std::string key_kind = "words", value_kind = "numbers";
  void fields(core::FieldList& f);
};

/// Filling is a line of noise, a needle of another key, or a sentence.
class NeedleTask : public RulerTask {
 public:
  enum class Haystack { noise, needles, sentences };
  /// `sentences`, where these are the filling: they are taken in turn, from the first on. Throws
  /// Error{usage} if more is asked for than there are keys.
  NeedleTask(const NeedleShape& shape, Haystack haystack, std::vector<std::string> sentences);
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;

 private:
  std::string drawn(const std::string& kind, core::Rng& rng) const;

  NeedleShape shape_;
  Haystack haystack_;
  std::vector<std::string> sentences_;
  std::vector<std::string> nouns_, adjectives_;  ///< of words
};

/// A text's sentences, each up to a full stop, question or exclamation mark that white space
/// follows; white space becomes one space. Throws Error{bad_data} if there is none.
std::vector<std::string> sentences_of(std::string_view text, const std::string& origin);

}  // namespace task
