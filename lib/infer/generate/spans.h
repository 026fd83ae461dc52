#pragma once
// Spans: after a word that stores gave, what follows it there, as far as the model agrees (Li et
// al. 2024, Nearest neighbor speculative decoding for LLM generation and attribution, NEST).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/generate/generator_options.h"
#include "infer/stores/neighbours.h"
#include "infer/stores/stores.h"

namespace infer {

/// A stretch of a store: the entry whose label was drawn, and the labels of the rows after it.
struct StoreSpan {
  StoreShare from = {};
  std::vector<std::int64_t> rest;  ///< as many as are proposed
};

/// What a text took of a span, and where it stands.
struct TakenSpan {
  std::string store;  ///< its folder
  std::int64_t document = 0;
  std::int64_t row = 0;                  ///< whose label was drawn
  double share = 0;                      ///< of the drawn word's p, that this entry gave
  std::int64_t token = 0;                ///< number of the drawn word in the text
  std::int64_t proposed = 0, taken = 0;  ///< tokens after it
  std::string text = {};                 ///< the drawn word and what was taken
};

/// Of the entries that gave a drawn word its probability (`shares` of it) the one that gave most is
/// where the span begins: of all stored places it has the highest joint probability with the word.
/// None where all together gave less than options.share, or nothing follows. At most `room` tokens.
std::optional<StoreSpan> propose_span(const SpanOptions& options, const Stores& stores,
                                      std::span<const StoreShare> shares, std::int64_t room);

/// Of those of which something was taken: [{"token", "tokens" (the drawn word among them), "text",
/// "store", "document", "row", "share"}].
core::OrderedJson to_json(const std::vector<TakenSpan>& spans);
/// The same, a line a span with tabs between, as citation_lines() has a token: prompt, sample,
/// number of the drawn word, text, share, store, document, row, and no context.
std::string span_lines(std::uint64_t prompt, std::int64_t sample,
                       const std::vector<TakenSpan>& spans);

/// Whether a token of a span is taken: its p is at least gamma of the best word's (the paper takes
/// it with probability min(1, p / (gamma max p)), so that a text would need more random numbers).
/// log_p (V), nats, by the model and its memories.
bool agrees(const SpanOptions& options, std::span<const float> log_p, std::int64_t token);

}  // namespace infer
