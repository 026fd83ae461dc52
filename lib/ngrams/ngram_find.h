#pragma once
// Where a text stands in indices of n-grams.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/options.h"
#include "ngrams/ngram_index.h"
#include "text/tokenizer/text_or_ids.h"

namespace ngrams {

/// The indices that are looked into.
struct IndexOptions {
  std::vector<std::string> folders;
  void fields(core::FieldList& f);
  /// Throws Error{usage} if there are none, and as Index does.
  std::shared_ptr<const Index> open() const;
};

struct FindOptions {
  std::vector<std::string> texts;
  IndexOptions index;
  bool ids = false;
  std::int64_t most = 10, around = 16;
  void fields(core::FieldList& f);
};

/// What an index says in words where it has a tokenizer, in ids where it has none.
class IndexText : public text::TextOrIds {
 public:
  explicit IndexText(const Index& index);
};

/// A text, how often it stands in the index, and some of the places.
struct Finding {
  core::OrderedJson report;               ///< {"text", "tokens", "count"}
  std::vector<core::OrderedJson> places;  ///< {"ngrams", "document", "offset", "before", "after"}
};
std::vector<Finding> find(const Index& index, const FindOptions& options);

}  // namespace ngrams
