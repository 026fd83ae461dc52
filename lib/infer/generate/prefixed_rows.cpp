#include "infer/generate/prefixed_rows.h"

namespace infer {

PrefixedRows::PrefixedRows(Engine& engine, RetrievePlan plan, std::int64_t window)
    : engine_(engine), retriever_(std::move(plan)), window_(window) {}

void PrefixedRows::start(const std::vector<std::vector<std::int64_t>>& prompts) {
  texts_ = prompts;
  engine_.open(std::ssize(texts_) * mix());
  read();
}

void PrefixedRows::read() {
  const RetrievePlan& plan = retriever_.plan();
  std::vector<RetrievalQuery> queries;
  for (const auto& text : texts_) {
    const auto n = std::min(plan.query, std::ssize(text));
    queries.push_back({{text.end() - n, text.end()}, {}});
  }
  prefixes_ = retriever_.find(queries);
  std::vector<RowInput> feeds;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto& text = texts_[i];
    const std::int64_t room = window_ - longest(prefixes_[i]) - (plan.every - 1);
    const auto n = std::min(room, std::ssize(text));
    for (std::size_t k = 0; k < static_cast<std::size_t>(mix()); ++k) {
      RowInput& feed = feeds.emplace_back();
      feed.fresh = true;
      if (k < prefixes_[i].size()) feed.tokens = prefixes_[i][k].tokens;
      feed.tokens.insert(feed.tokens.end(), text.end() - n, text.end());
    }
  }
  since_ = 0;
  feed(feeds);
}

void PrefixedRows::feed(const std::vector<RowInput>& feeds) {
  const nn::Hidden all = engine_.feed(feeds);
  std::vector<std::int64_t> last;
  std::int64_t end = 0;
  for (const auto& feed : feeds) last.push_back((end += std::ssize(feed.tokens)) - 1);
  const Tensor rows = torch::tensor(last, torch::kInt64).to(all.output.device());
  hidden_ = all.select(rows);
}

void PrefixedRows::advance(const std::vector<std::int64_t>& tokens) {
  const auto most = std::max(window_, retriever_.plan().query);
  std::vector<RowInput> feeds;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    auto& text = texts_[i];
    if (std::ssize(text) >= 2 * most) text.erase(text.begin(), text.end() - most);
    text.push_back(tokens[i]);
    for (std::int64_t k = 0; k < mix(); ++k) feeds.push_back({{tokens[i]}});
  }
  if (++since_ == retriever_.plan().every) {
    read();
  } else {
    feed(feeds);
  }
}

void PrefixedRows::select(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> of_engine;
  std::vector<std::vector<std::int64_t>> texts;
  std::vector<Prefixes> prefixes;
  for (const auto row : rows) {
    for (std::int64_t k = 0; k < mix(); ++k) of_engine.push_back(row * mix() + k);
    texts.push_back(texts_[static_cast<std::size_t>(row)]);
    prefixes.push_back(prefixes_[static_cast<std::size_t>(row)]);
  }
  engine_.select(of_engine);
  texts_ = std::move(texts), prefixes_ = std::move(prefixes);
  const Tensor index = torch::tensor(of_engine, torch::kInt64).to(hidden_.output.device());
  hidden_ = hidden_.select(index);
}

nn::Hidden PrefixedRows::best() const {
  return {hidden_.output.slice(0, 0, {}, mix()), hidden_.key.slice(0, 0, {}, mix())};
}

Tensor PrefixedRows::log_probs(nn::Head& head) const {
  if (mix() == 1) return head.log_probs(hidden_.output, nullptr);
  const auto texts = std::ssize(texts_);
  Tensor weight = torch::full({texts, mix()}, -std::numeric_limits<double>::infinity());
  for (std::int64_t i = 0; i < texts; ++i) {
    if (prefixes(i).empty()) weight[i][0] = 0;
    for (std::int64_t k = 0; k < std::ssize(prefixes(i)); ++k)
      weight[i][k] = std::log(prefixes(i)[static_cast<std::size_t>(k)].weight);
  }
  const Tensor scores = head.log_probs(hidden_.output, nullptr);
  const Tensor rows = scores.view({texts, mix(), scores.size(1)});
  return torch::logsumexp(rows + weight.to(rows.options()).unsqueeze(2), 1);
}

}  // namespace infer
