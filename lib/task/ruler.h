#pragma once
// Generates questions about long texts as RULER does (Hsieh et al. 2024, arXiv 2404.06654): the
// information for the answer is somewhere in filler text of adjustable length. Tasks, lengths and
// scoring are RULER's; words and sentences are our own.
// Generates RULER's variable tracking: names are assigned a value, some through other names.
// Generates RULER's needles in a haystack: key-value pairs in a text, and questions about some
// keys.
// Scores answers as RULER does (Hsieh et al. 2024), by searching for strings.

#include "core/file_text.h"
#include "core/options.h"
#include "core/rng.h"

namespace task {

/// A RulerProblem is a prompt and its answers.
struct RulerProblem {
  std::string prompt;  ///< the text that a model continues
  /// All required answers, or alternative answers: see ruler_score().
  std::vector<std::string> answers;
};

/// Returns the expected answer text: the answers, separated by commas.
std::string said(const std::vector<std::string>& answers);

/// A RulerTask draws the problems of one task.
class RulerTask {
 public:
  virtual ~RulerTask() = default;
  /// Returns problem `number` of a seed with `filling` parts of filler; more parts make it longer.
  /// Const calls are thread safe.
  virtual RulerProblem draw(
      std::uint64_t seed, std::uint64_t number, std::int64_t filling) const = 0;
  /// Returns the text that a right model writes behind the prompt; if several answers are right,
  /// the first one.
  virtual std::string answer_of(const RulerProblem& problem) const {
    return " " + said(problem.answers);
  }
  /// Returns the largest possible `filling`.
  virtual std::int64_t most_filling() const { return std::int64_t{1} << 24; }
};

/// A CountTokens returns the number of tokens of a text.
using CountTokens = std::function<std::int64_t(std::string_view)>;

/// A RulerLength says how long a problem may be.
struct RulerLength {
  std::int64_t tokens = 4096;  ///< maximum length of prompt and answer together
  std::int64_t answer = 128;   ///< tokens reserved for the answer, at least
  bool longer_answers = true;  ///< more are reserved for a longer answer; else it is refused
  std::int64_t shots = 0;      ///< solved problems with little filler before the prompt
};

/// A FittedProblem is a problem with as much filler as fits.
struct FittedProblem {
  RulerProblem problem;
  std::int64_t tokens = 0;  ///< of the prompt
  std::int64_t answer = 0;  ///< reserved for the answer
};
/// Draws a problem that fits the length. Throws Error{usage} if it does not fit even without
/// filler, or if its answer is longer than reserved.
FittedProblem fitted_problem(const RulerTask& task, const RulerLength& length, std::uint64_t seed,
    std::uint64_t number, const CountTokens& count);

/// Returns `parts` with `others` inserted, in order, at uniformly drawn positions.
std::vector<std::string> strewn(
    std::vector<std::string> parts, std::vector<std::string> others, core::Rng& rng);
/// Joins parts with `between` as separator.
std::string joined(const std::vector<std::string>& parts, std::string_view between);
/// Draws texts until one is not in `used`, and adds it.
template <class Draw> std::string fresh(std::unordered_set<std::string>& used, const Draw& draw) {
  for (;;)
    if (auto made = draw(); used.insert(made).second) return made;
}

/// Draws an invented name of two or three syllables.
std::string made_name(core::Rng& rng);

/// A VariableTask has chains of `hops` + 1 names. The first name of a chain is set to a number, and
/// each other name to the one before it, in the order of the text. The prompt asks for the number
/// of the first chain; all names of that chain are answers.
class VariableTask : public RulerTask {
 public:
  VariableTask(std::int64_t chains, std::int64_t hops) : chains_(chains), hops_(hops) {}
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;

 private:
  std::int64_t chains_, hops_;
};

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

/// Normalises a model's output: trims white space, replaces control characters by newlines, and
/// converts ASCII to lower case.
std::string ruler_said(std::string_view text);

/// Returns the fraction of `answers` that occur anywhere in the output, in lower case ("all":
/// needles and variables). With `any`, returns 1 if at least one occurs, else 0 ("any": documents).
double ruler_score(std::string_view text, const std::vector<std::string>& answers, bool any);

/// RulerAsked holds the part of a problem of gen-ruler that scoring needs.
struct RulerAsked {
  std::string task;
  std::int64_t length = 0;
  bool any = false;
  std::vector<std::string> answers;
};

/// Reads problems, keyed by the dump of their id. Throws Error{bad_data}, naming the line, for a
/// line that gen-ruler does not write and for a repeated id.
std::map<std::string, RulerAsked> read_ruler_problems(core::LineReader& lines);

/// A RulerScore sums scores by task and length.
class RulerScore {
 public:
  explicit RulerScore(std::map<std::string, RulerAsked> asked) : asked_(std::move(asked)) {}
  /// Adds a line of sample --json. Throws Error{bad_data} if it answers none of the problems.
  void add(std::string_view line, const std::string& origin);
  /// Throws Error{bad_data}, naming a problem, if a problem has no answer.
  void check_complete(const std::string& origin) const;
  /// total() and parts() return the number of problems and answers and the mean score in percent:
  /// total() for all, parts() for each task and length.
  core::OrderedJson total() const;
  std::vector<core::OrderedJson> parts() const;

 private:
  struct Sum {
    std::int64_t answers = 0;
    double score = 0;
  };
  std::map<std::string, RulerAsked> asked_;
  std::map<std::string, Sum> by_id_;
};

}  // namespace task
