#include "infer/generate/spans.h"

#include "core/plain_text.h"
#include "infer/generate/generator_draw.h"
#include "task/token_scores.h"

namespace infer {

std::optional<StoreSpan> propose_span(const SpanOptions& options, const Stores& stores,
    std::span<const StoreShare> shares, std::int64_t room) {
  room = std::min(room, options.longest);
  double sum = 0;
  const StoreShare* best = nullptr;
  for (const StoreShare& one : shares) {
    sum += one.share;
    if (best == nullptr || one.share > best->share) best = &one;
  }
  if (room <= 0 || best == nullptr || sum < options.share) return std::nullopt;
  const store::Store& store = stores[static_cast<std::size_t>(best->store)];
  std::vector<std::int64_t> rows;
  for (auto row = store.after(best->row); row >= 0 && std::ssize(rows) < room;
       row = store.after(row))
    rows.push_back(row);
  if (rows.empty()) return std::nullopt;
  const std::vector<float> any(
      static_cast<std::size_t>(store.query_width()));  // search() must return labels
  std::vector<float> scores(rows.size());
  std::vector<std::int32_t> labels(rows.size());
  store.score(any, rows, scores, labels);
  return StoreSpan{*best, {labels.begin(), labels.end()}};
}

core::OrderedJson to_json(const std::vector<TakenSpan>& spans) {
  core::OrderedJson all = core::OrderedJson::array();
  for (const TakenSpan& span : spans)
    if (span.taken > 0)
      all.push_back({{"token", span.token}, {"tokens", 1 + span.taken}, {"text", span.text},
          {"store", span.store}, {"document", span.document}, {"row", span.row},
          {"share", span.share}});
  return all;
}

std::string span_lines(
    std::uint64_t prompt, std::int64_t sample, const std::vector<TakenSpan>& spans) {
  std::string lines;
  for (const TakenSpan& span : spans)
    if (span.taken > 0)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{}\t\n", prompt,
          sample, span.token, task::escape_text(span.text), span.share, core::printable(span.store),
          span.document, span.row);
  return lines;
}

bool agrees(const SpanOptions& options, std::span<const float> log_p, std::int64_t token) {
  if (token < 0 || token >= std::ssize(log_p)) return false;
  const double best = log_p[static_cast<std::size_t>(best_word(log_p))];
  return log_p[static_cast<std::size_t>(token)] >= best + std::log(options.gamma);
}

}  // namespace infer
