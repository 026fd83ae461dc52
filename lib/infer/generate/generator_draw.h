#pragma once
// The next word, drawn from a row of log-probabilities.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "infer/generate/generator_options.h"

namespace infer {

/// Draws words as DrawOptions say. Keeps scratch memory: one a thread.
class Draw {
 public:
  explicit Draw(const DrawOptions& options) : options_(options) {}

  /// The same with a temperature of the text that is drawn for.
  Draw& at(double temperature);

  /// log_p (V), nats, need not be normalised. Takes one number of `rng`; none at temperature 0.
  /// Throws Error{bad_data} if no word has a finite log-probability, or if there is a NaN.
  std::int64_t operator()(std::span<const float> log_p, core::Rng& rng);

  /// What is drawn from: (word, probability), best first if the options leave words out, else by
  /// id.
  std::vector<std::pair<std::int64_t, double>> distribution(std::span<const float> log_p);

 private:
  void prepare(std::span<const float> log_p);
  void cut(std::span<const float> log_p, float best);

  DrawOptions options_;
  std::vector<std::int64_t> words_;  // what weights_ belong to; empty: all words, by id
  std::vector<float> weights_;       // not normalised
  double total_ = 0;
};

/// What log-probabilities below the highest are multiplied by at a temperature above 0, however
/// small: finite, so that the best word is drawn where a temperature is all but 0.
float scale_of_draw(double temperature);

/// Throws Error{bad_data} if the highest of a model's log-probabilities is not finite.
void expect_numbers(double best);

/// The word with the highest log-probability, of equals the lowest id; throws as Draw does.
std::int64_t best_word(std::span<const float> log_p);

/// The `n` words with the highest log-probabilities, best first, of equals the lower id first.
std::vector<std::int64_t> best_words(std::span<const float> log_p, std::int64_t n);

}  // namespace infer
