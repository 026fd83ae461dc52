#include <memory>

#include "infer/scorer.h"
#include "text/decode_documents.h"
#include "text/tokenizer.h"

namespace infer {

std::int64_t beginning_token(const shard::Dataset& data) {
  const auto& documents = data.documents();
  if (data.header().tokenizer.empty() || documents.size() == 0 || documents.end[0] == 0) return -1;
  const auto tokenizer = text::parse_tokenizer(data.header().tokenizer, data.name());
  const auto mark = text::end_of_document_of(data, *tokenizer);
  std::uint32_t last = 0;
  data.read(documents.end[0] - 1, std::span(&last, 1));
  return mark && last == *mark ? static_cast<std::int64_t>(last) : -1;
}

}  // namespace infer
