#pragma once
// Copied spans: after a sampled token, copies the tokens that follow it in a datastore while the
// model agrees (NEST: Li et al. 2024, Nearest neighbor speculative decoding for LLM generation and
// attribution).

#include "infer/generate/generator_options.h"
#include "infer/stores/stores.h"

namespace infer {

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
