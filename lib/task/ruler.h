#pragma once
// Questions about long texts, as RULER asks them (Hsieh et al. 2024, arXiv 2404.06654): what is
// needed for the answer stands somewhere in filling that makes the text as long as one likes.
// Tasks, lengths and scoring are RULER's, words and sentences are this project's own.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.h"

namespace task {

struct RulerProblem {
  std::string prompt;                ///< what a model goes on from
  std::vector<std::string> answers;  ///< all that are to be said, or ways to say one: ruler_score.h
};

class RulerTask {
 public:
  virtual ~RulerTask() = default;
  /// The `number`-th problem of a seed with so many parts of filling: more make it longer. Const
  /// calls are thread safe.
  virtual RulerProblem draw(std::uint64_t seed, std::uint64_t number,
                            std::int64_t filling) const = 0;
  /// Most parts of filling there are.
  virtual std::int64_t most_filling() const { return std::int64_t{1} << 24; }
};

/// Of a text, in tokens.
using CountTokens = std::function<std::int64_t(std::string_view)>;

struct RulerLength {
  std::int64_t tokens = 4096;  ///< of prompt and answer together, at most
  std::int64_t answer = 128;   ///< that are left for the answer
  std::int64_t shots = 0;      ///< solved problems of little filling in front of the prompt
};

/// A problem with as much filling as fits, and how many tokens its prompt has.
struct FittedProblem {
  RulerProblem problem;
  std::int64_t tokens = 0;
};
/// Throws Error{usage} if it does not fit without filling.
FittedProblem fitted_problem(const RulerTask& task, const RulerLength& length, std::uint64_t seed,
                             std::uint64_t number, const CountTokens& count);

/// What a model that knew the answer would write: the answers, a comma between them.
std::string said(const std::vector<std::string>& answers);

/// `parts` with `others` among them, in their order, at places drawn evenly.
std::vector<std::string> strewn(std::vector<std::string> parts, std::vector<std::string> others,
                                core::Rng& rng);
/// With `between` between them.
std::string joined(const std::vector<std::string>& parts, std::string_view between);

/// A line that says nothing about anything asked.
std::string_view ruler_noise();
/// A name that no language has, of two or three syllables.
std::string made_name(core::Rng& rng);

}  // namespace task
