#include "page/annotated_text.h"

#include "core/json_line.h"

namespace page {
namespace {

using core::get;

AnnotatedToken token_of(const core::Json& cited, const std::string& origin) {
  if (!cited.is_object()) core::bad_data("{}: a citation is not an object", origin);
  AnnotatedToken token;
  token.text = get<std::string>(cited, "text", origin);
  token.nats = -get<double>(cited, "log_prob", origin);
  const double share = std::clamp(get<double>(cited, "share", origin), 0., 1.);
  token.shares = {1 - share, share};
  for (const auto& context : get<std::vector<core::Json>>(cited, "contexts", origin))
    token.contexts.push_back({get<std::string>(context, "store", origin),
        get<std::int64_t>(context, "document", origin), get<std::int64_t>(context, "row", origin),
        get<double>(context, "share", origin), get<std::string>(context, "context", origin),
        context.contains("source") ? get<std::string>(context, "source", origin) : std::string()});
  return token;
}

}  // namespace

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
  return std::ranges::max_element(token.shares) - token.shares.begin();
}

void add_sample(AnnotatedText& text, std::string_view line, const std::string& origin) {
  const auto json = core::parse_json_line(line, origin);
  if (!json.is_object()) core::bad_data("{}: not a JSON object", origin);
  if (!json.contains("citations"))
    core::bad_data("{}: has no citations; write it with sample --cite --json", origin);
  if (text.sources.empty()) text.sources = {"the model", "stores and n-grams"};
  AnnotatedToken prompt;
  prompt.text = get<std::string>(json, "prompt", origin);
  prompt.begins_document = true;
  std::vector<AnnotatedToken> tokens{prompt};
  for (const auto& cited : get<std::vector<core::Json>>(json, "citations", origin))
    tokens.push_back(token_of(cited, origin));
  text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
}

}  // namespace page
