#pragma once
// Finds the occurrences of a text in n-gram indices.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/options.h"
#include "ngrams/ngram_index.h"
#include "text/tokenizer/text_or_ids.h"

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

}  // namespace ngrams
