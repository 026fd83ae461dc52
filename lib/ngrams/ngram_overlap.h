#pragma once
// Reports which spans of a text also occur in n-gram indices, to detect contamination.
// Finds the occurrences of a text in n-gram indices.

#include "core/options.h"
#include "ngrams/ngram_index.h"
#include "text/tokenizer/tokenizer.h"

namespace ngrams {

/// IndexOptions lists the indices to search.
struct IndexOptions {
  std::vector<std::string> folders;
  void fields(core::FieldList& f);
  /// Opens the indices. Throws Error{usage} if there are none, and as Index does.
  std::shared_ptr<const Index> open() const;
};

/// FindOptions says which texts to find.
struct FindOptions {
  std::vector<std::string> texts;
  IndexOptions index;
  bool ids = false;
  std::int64_t most = 10, around = 16;
  void fields(core::FieldList& f);
};

/// An IndexText converts tokens to text with an index's tokenizer, or to ids without one.
class IndexText : public text::TextOrIds {
 public:
  explicit IndexText(const Index& index);
};

/// A Finding is a text, its number of occurrences, and some of their positions.
struct Finding {
  core::OrderedJson report;               ///< {"text", "tokens", "count"}
  std::vector<core::OrderedJson> places;  ///< {"ngrams", "document", "offset", "before", "after"}
};
/// Finds the texts of the options.
std::vector<Finding> find(const Index& index, const FindOptions& options);

/// OverlapOptions says which texts to compare with which indices.
struct OverlapOptions {
  std::vector<std::string> files;
  IndexOptions index;
  std::int64_t at_least = 13;
  bool spans = false;
  void fields(core::FieldList& f);
};

/// A Span is a maximal range of tokens [begin, end) of a document that occurs in the index: the
/// range extended by one token on either side does not occur.
struct Span {
  std::uint64_t begin = 0, end = 0;
  Match match;
};
/// Returns the spans of at least `at_least` tokens, ascending; they may overlap.
std::vector<Span> spans_of(const std::shared_ptr<const Index>& index,
    std::span<const std::uint32_t> document, std::uint64_t at_least);

/// Overlap holds the counts for a document, or for all.
struct Overlap {
  std::uint64_t documents = 0;  ///< number of documents with a span
  std::uint64_t tokens = 0;
  std::uint64_t known = 0;  ///< number of tokens inside spans
  std::uint64_t spans = 0, longest = 0;
};

/// OverlapReport is the report of overlap().
struct OverlapReport {
  /// {"documents", "with_spans", "tokens", "known", "share", "spans", "longest"}.
  core::OrderedJson all;
  /// One row per document with a span: {"document", "tokens", "known", "share", "spans",
  /// "longest"}; or one row per span: {"document", "offset", "tokens", "count", "text", "ngrams",
  /// "there", "there_offset"}, where the last three are the span's first occurrence in the index.
  std::vector<core::OrderedJson> rows;
};

/// Compares data of kind tokens, made with the index's tokenizer. `progress` receives the number of
/// tokens so far. Throws Error{bad_data} for other data.
OverlapReport overlap(const std::shared_ptr<const Index>& index, const shard::Dataset& data,
    const OverlapOptions& options, std::int64_t jobs,
    const std::function<void(std::uint64_t)>& progress = {});

}  // namespace ngrams
