#pragma once
// What of a text stands in indices of n-grams too: a report of contamination.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/options.h"
#include "ngrams/ngram_find.h"
#include "ngrams/ngram_index.h"
#include "shard/dataset.h"

namespace ngrams {

struct OverlapOptions {
  std::vector<std::string> files;
  IndexOptions index;
  std::int64_t at_least = 13;
  bool spans = false;
  void fields(core::FieldList& f);
};

/// Tokens [begin, end) of a document that stand in the index one after the other, while neither
/// those with the token before nor those with the token behind do.
struct Span {
  std::uint64_t begin = 0, end = 0;
  Match match;
};
/// Those of `at_least` tokens or more, ascending; they may overlap each other.
std::vector<Span> spans_of(const std::shared_ptr<const Index>& index,
                           std::span<const std::uint32_t> document, std::uint64_t at_least);

/// Of a document, or of all.
struct Overlap {
  std::uint64_t documents = 0;  ///< with a span
  std::uint64_t tokens = 0;
  std::uint64_t known = 0;  ///< tokens that are in a span
  std::uint64_t spans = 0, longest = 0;
};

struct OverlapReport {
  /// {"documents", "with_spans", "tokens", "known", "share", "spans", "longest"}.
  core::OrderedJson all;
  /// Of each document with a span {"document", "tokens", "known", "share", "spans", "longest"}; or
  /// of each span {"document", "offset", "tokens", "count", "text", "ngrams", "there",
  /// "there_offset"}: the first place where it stands.
  std::vector<core::OrderedJson> rows;
};

/// Data of kind tokens with the index's tokenizer. `progress` is told tokens so far. Throws
/// Error{bad_data} for other data.
OverlapReport overlap(const std::shared_ptr<const Index>& index, const shard::Dataset& data,
                      const OverlapOptions& options, std::int64_t jobs,
                      const std::function<void(std::uint64_t)>& progress = {});

}  // namespace ngrams
