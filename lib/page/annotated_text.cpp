#include "page/annotated_text.h"

#include <algorithm>

namespace page {

Means means_of(const AnnotatedText& text) {
  Means means;
  double nats = 0, beside = 0, compared = 0;
  for (const auto& token : text.tokens) {
    if (!token.scored()) continue;
    ++means.tokens;
    nats += token.nats;
    if (!token.compared()) continue;
    ++means.compared;
    beside += token.beside;
    compared += token.nats;
  }
  if (means.tokens > 0) means.nats = nats / static_cast<double>(means.tokens);
  if (means.compared > 0) {
    means.beside = beside / static_cast<double>(means.compared);
    means.nats_compared = compared / static_cast<double>(means.compared);
  }
  return means;
}

std::int64_t main_source(const AnnotatedToken& token) {
  if (token.shares.empty()) return -1;
  return std::max_element(token.shares.begin(), token.shares.end()) - token.shares.begin();
}

}  // namespace page
