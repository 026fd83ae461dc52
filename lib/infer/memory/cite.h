#pragma once
// Cites the stored contexts that contributed to a token's probability.

#include "infer/memory/stream_memory.h"

namespace infer {

/// A token and the contexts in datastores and n-gram texts that it followed, by descending share.
struct CitedToken {
  struct Context : Evidence::Context {
    std::string text;    ///< text before the token in its document
    std::string source;  ///< FILE:LINE, or FILE if the line is unknown; empty: unknown
  };
  std::int64_t token;
  std::string text;
  double share;     ///< of all entries, including unlisted ones
  double log_prob;  ///< nats
  std::vector<Context> contexts;
  std::vector<Evidence::Model> models = {};  ///< contributions of further models, in their order
};

inline constexpr std::int64_t kContextTokens = 16;

/// Converts evidence to citations with text. Not thread safe.
class Citer {
 public:
  /// Cites at most `most` contexts for each token, of kContextTokens tokens each. Throws
  /// Error{usage} if no memory supports citations.
  Citer(const MemoryPlan& memory, text::TokenizerPtr tokenizer, std::int64_t most);
  /// Cites the sources of the token's probability. Call memory.log_probs() before.
  CitedToken cite(const StreamMemory& memory, const RowToken& of) const;

 private:
  std::string decode(const std::vector<std::int32_t>& ids) const;
  std::string source_of(const Evidence::Context& context) const;
  text::TokenizerPtr tokenizer_;
  std::int64_t most_;
  mutable std::vector<std::int32_t> newlines_;  // by token id; empty until first use
};

/// Formats citations as [{"token", "text", "log_prob", "share", "contexts": [{"store", "document",
/// "row", "share", "context"}]}]. N-gram contexts also have "matched", named documents "source",
/// and mixtures with further models "models": [{"model", "share"}].
core::OrderedJson to_json(const std::vector<CitedToken>& cited);
/// Returns the column names of citation_lines().
std::string citation_heading();
/// Formats one tab-separated line for each context: prompt, sample, index of the token, its text,
/// the context's share, store, document, row, context, source. task::escape_text escapes texts,
/// core::printable store and source. A further model gets a line too: its folder, "-" for document
/// and row, empty context and source.
std::string citation_lines(
    std::uint64_t prompt, std::int64_t sample, const std::vector<CitedToken>& cited);

}  // namespace infer
