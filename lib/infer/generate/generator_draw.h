#pragma once
// Samples the next token from a row of log-probabilities.
// Samples the next tokens on the device, so that only a few numbers for each token are copied to
// the host.
// Finds stop strings in a text that arrives in pieces.
// Copied spans: after a sampled token, copies the tokens that follow it in a datastore while the
// model agrees (NEST: Li et al. 2024, Nearest neighbor speculative decoding for LLM generation and
// attribution).

#include "core/rng.h"
#include "infer/generate/generator_options.h"
#include "infer/stores/stores.h"

namespace infer {

/// Samples tokens with DrawOptions. Owns scratch memory: use one object for each thread.
class Draw {
 public:
  explicit Draw(const DrawOptions& options) : options_(options) {}

  /// Sets the options of the next draw.
  Draw& by(const DrawOptions& options);

  /// Samples a token; log_p (V) is in nats and need not be normalised. Uses one number of `rng`,
  /// none at temperature 0. Throws Error{bad_data} if no token has a finite log-probability or one
  /// is NaN.
  std::int64_t operator()(std::span<const float> log_p, core::Rng& rng);

  /// Returns the sampling distribution as (token, probability): best first if the options exclude
  /// tokens, else by id.
  std::vector<std::pair<std::int64_t, double>> distribution(std::span<const float> log_p);

 private:
  void prepare(std::span<const float> log_p);
  void cut(std::span<const float> log_p, float best);

  DrawOptions options_;
  std::vector<std::int64_t> tokens_;  // tokens of weights_; empty: all tokens, by id
  std::vector<float> weights_;        // not normalised
  double total_ = 0;
};

/// Returns the token with the highest log-probability; ties go to the lowest id. Throws as Draw
/// does.
std::int64_t best_token(std::span<const float> log_p);

/// Returns the `n` tokens with the highest log-probabilities, best first; ties go to the lower id.
std::vector<std::int64_t> best_tokens(std::span<const float> log_p, std::int64_t n);

/// Sampling parameters of a row: the temperature, and a random number in [0, 1) from the text's
/// Rng, unused at temperature 0.
struct RowDraw {
  double temperature = 1;
  double number = 0;
};

/// A token and its log-probability in nats.
struct DrawnToken {
  std::int64_t token = 0;
  double log_prob = 0;
};

/// Samples a token from each row of log_p (B, V), nats, float32, with `options` and the row's
/// temperature. Results equal those of Draw, except for rounding. Synchronises once, for three
/// numbers a row. Throws Error{bad_data} as Draw does.
std::vector<DrawnToken> draw_there(
    const DrawOptions& options, const torch::Tensor& log_p, const std::vector<RowDraw>& rows);

/// Text that ends before the first complete stop string, independent of piece boundaries. Copied
/// with a hypothesis; `stops` must outlive it.
class StopText {
 public:
  explicit StopText(const std::vector<std::string>& stops) : stops_(&stops) {}
  /// Appends a piece; returns true once a stop string is complete (further pieces have no effect).
  bool push(std::string_view piece);

  const std::string& text() const { return text_; }
  /// Returns the bytes of text() that no stop string can remove any more.
  std::size_t settled() const;
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string>* stops_;
  std::string text_;
  bool stopped_ = false;
};

/// A span of a datastore: the entry whose label was sampled, and the labels of the following rows.
struct StoreSpan {
  StoreShare from = {};
  std::vector<std::int64_t> rest;  ///< labels to propose
};

/// Tokens that a text copied from a span, and their source.
struct TakenSpan {
  std::string store;  ///< folder of the datastore
  std::int64_t document = 0;
  std::int64_t row = 0;                  ///< row whose label was sampled
  double share = 0;                      ///< fraction of the sampled token's p from this entry
  std::int64_t token = 0;                ///< index of the sampled token in the text
  std::int64_t proposed = 0, taken = 0;  ///< numbers of tokens after it
  std::string text = {};                 ///< the sampled token and the copied tokens
};

/// Proposes the span after the entry with the largest contribution to a sampled token (`shares`).
/// This entry has the highest joint probability with the token among all stored positions. The span
/// has at most `room` tokens. Returns nullopt if all entries together contributed less than
/// options.share, or no row follows.
std::optional<StoreSpan> propose_span(const SpanOptions& options, const Stores& stores,
    std::span<const StoreShare> shares, std::int64_t room);

/// Formats the spans with copied tokens: [{"token", "tokens" (including the sampled token), "text",
/// "store", "document", "row", "share"}].
core::OrderedJson to_json(const std::vector<TakenSpan>& spans);
/// Formats one tab-separated line for each span, in the columns of citation_lines(): prompt,
/// sample, index of the sampled token, text, share, store, document, row, and an empty context.
std::string span_lines(
    std::uint64_t prompt, std::int64_t sample, const std::vector<TakenSpan>& spans);

/// Returns whether to copy a token of a span: its p is at least gamma times the best token's. The
/// paper instead accepts with probability min(1, p / (gamma max p)), which would need more random
/// numbers. log_p (V), in nats, comes from the mixture of model and memories.
bool agrees(const SpanOptions& options, std::span<const float> log_p, std::int64_t token);

}  // namespace infer
