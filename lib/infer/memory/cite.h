#pragma once
// Where a token's probability comes from: the stored contexts that gave it mass.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/memory/stream_memory.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// A token and the contexts in stores and in texts of n-grams after which it stood, the largest
/// share first.
struct CitedToken {
  struct Context {
    std::string store;  ///< folder of a datastore, or of an index of n-grams
    std::int64_t document;
    std::int64_t row;  ///< of the store; the token's element in a text of n-grams
    double share;
    std::string text;          ///< what stood before the token there, of the same document
    std::int64_t matched = 0;  ///< n-grams: tokens before it that are those of the text; stores: 0
    std::string source = {};   ///< FILE:LINE, FILE where the line is not known; empty: neither is
  };
  std::int64_t token;
  std::string text;
  double share;     ///< of all entries, those that are not listed included
  double log_prob;  ///< nats
  std::vector<Context> contexts;
  std::vector<Evidence::Model> models = {};  ///< that read beside, in their order
};

inline constexpr std::int64_t kContextTokens = 16;

/// Puts evidence into words. Not thread safe.
class Citer {
 public:
  /// At most `most` contexts of a token, of kContextTokens tokens each. Throws Error{usage} where
  /// the memory has nothing to cite.
  Citer(const MemoryPlan& memory, text::TokenizerPtr tokenizer, std::int64_t most);
  /// After memory.log_probs(): what gave row's p(token), whose logarithm is `log_prob`.
  CitedToken cite(const StreamMemory& memory, std::int64_t row, std::int64_t token,
                  double log_prob) const;

 private:
  std::string decode(const std::vector<std::int32_t>& ids) const;
  std::string source_of(const Evidence::Context& context) const;
  text::TokenizerPtr tokenizer_;
  std::int64_t most_;
  mutable std::vector<std::int32_t> newlines_;  // of each token; empty: not needed yet
};

/// [{"token", "text", "log_prob", "share", "contexts": [{"store", "document", "row", "share",
/// "context"}]}]; of n-grams with "matched" too; where the document has a name, "source"; where
/// further models take part, "models": [{"model", "share"}].
core::OrderedJson to_json(const std::vector<CitedToken>& cited);
/// The names of the columns of citation_lines().
std::string citation_heading();
/// A line a context, with tabs between: prompt, sample, number of the token, its text, the
/// context's share, store, document, row, context, source (texts as task::escape_text writes them,
/// store and source as core::printable). A further model is a line too: its folder, "-" for
/// document and row, neither context nor source.
std::string citation_lines(std::uint64_t prompt, std::int64_t sample,
                           const std::vector<CitedToken>& cited);

}  // namespace infer
