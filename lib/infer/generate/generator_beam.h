#pragma once
// Beam search over the continuations of one prompt: the bookkeeping, without a model.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace infer {

/// Why a text ended: the end-of-document token, a stop string, --max-tokens.
enum class Finish { end, stop, length };
std::string_view name_of(Finish finish);

struct Hypothesis {
  std::vector<std::int64_t> tokens;
  double log_prob = 0;  ///< nats, of all its tokens
  Finish finish = Finish::length;
};

/// Each step extends every live hypothesis by every word and ranks all by log p. One that ends
/// among the `width` best is set aside; the `width` best of those that go on live on. The search is
/// over when `width` have ended or at `max_tokens`. What is compared at last is log p /
/// tokens^length_penalty; those still alive count too where fewer than `width` have ended. Equal
/// scores: the earlier hypothesis, then the lower word, is the better.
class Beam {
 public:
  Beam(std::int64_t width, double length_penalty, std::int64_t max_tokens);

  /// Hypotheses alive, each of which needs a row of log-probabilities: one at first.
  const std::vector<Hypothesis>& live() const { return live_; }
  /// Tells how the hypothesis live()[parent] ends with `word`, or that it goes on. It may be asked
  /// more than once, and of any number of words.
  using Ends = std::function<std::optional<Finish>(std::size_t parent, std::int64_t word)>;
  /// rows[i] (V): log p of the next word of live()[i]. Returns for each of the new live hypotheses
  /// the index of the one it continues (its word is its last token); empty once done().
  std::vector<std::int64_t> advance(const std::vector<std::span<const float>>& rows,
                                    const Ends& ends);
  bool done() const { return done_; }
  /// The best `n`, best first.
  std::vector<Hypothesis> best(std::int64_t n) const;

 private:
  struct Step;  // what one call of advance() makes
  double score(const Hypothesis& hypothesis) const;
  std::optional<Step> step(const std::vector<std::span<const float>>& rows, std::int64_t most,
                           const Ends& ends) const;
  std::size_t width_;
  double length_penalty_;
  std::int64_t max_tokens_, length_ = 0;
  bool done_ = false;
  std::vector<Hypothesis> live_, ended_;
};

}  // namespace infer
