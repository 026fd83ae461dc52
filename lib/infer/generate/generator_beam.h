#pragma once
// Beam search over the continuations of a prompt, without the model.

#include "core/base.h"

namespace infer {

/// Reason why a text ended: the end-of-document token, a stop string, or --max-tokens.
enum class Finish { end, stop, length };
std::string_view name_of(Finish finish);

/// How a hypothesis ends. `text`: what is left of it before a stop string.
struct Ending {
  Ending(Finish how = Finish::length, std::string left = {}) : finish(how), text(std::move(left)) {}
  Finish finish;
  std::string text;
};

struct Hypothesis {
  std::vector<std::int64_t> tokens;
  double log_prob = 0;  ///< nats, sum over all tokens
  Ending ending = {};
};

/// Each step extends every live hypothesis by every token and ranks the results by log p.
/// Hypotheses that end among the `width` best are set aside; the `width` best unfinished ones
/// remain live. Of those that end with a stop string and leave equal texts, only the best counts.
/// The search ends when `width` have ended or at `max_tokens`. The final ranking is
/// by log p / tokens^length_penalty and includes live hypotheses if fewer than `width` have ended.
/// Ties: the earlier hypothesis, then the lower token id, ranks first.
class Beam {
 public:
  Beam(std::int64_t width, double length_penalty, std::int64_t max_tokens);

  /// Returns the live hypotheses, which need one row of log-probabilities each; initially one.
  const std::vector<Hypothesis>& live() const { return live_; }
  /// Returns how the hypothesis live()[parent] ends with `token`, or nullopt if it continues. May
  /// be called repeatedly and for any tokens.
  using Ends = std::function<std::optional<Ending>(std::size_t parent, std::int64_t token)>;
  /// Extends the search; rows[i] (V) is log p of the next token of live()[i]. Returns for each new
  /// live hypothesis the index of its parent (its last token is the new one); empty once done().
  std::vector<std::int64_t> advance(
      const std::vector<std::span<const float>>& rows, const Ends& ends);
  bool done() const { return done_; }
  /// Returns the best `n`, best first.
  std::vector<Hypothesis> best(std::int64_t n) const;

 private:
  struct Step;  // result of one call of advance()
  double score(const Hypothesis& hypothesis) const;
  void end(Hypothesis hypothesis);
  std::optional<Step> step(
      const std::vector<std::span<const float>>& rows, std::int64_t most, const Ends& ends) const;
  std::size_t width_;
  double length_penalty_;
  std::int64_t max_tokens_, length_ = 0;
  bool done_ = false;
  std::vector<Hypothesis> live_, ended_;
};

}  // namespace infer
