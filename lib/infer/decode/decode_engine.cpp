#include "infer/decode/decode_engine.h"

#include "infer/decode/paged_rows.h"

namespace infer {

void ModuleEngine::open(std::int64_t rows) {
  state_ = {};
  rows_ = rows;
  fed_.assign(static_cast<std::size_t>(rows), 0);
  marked_.reset();
  unused_ = true;
}

nn::Hidden ModuleEngine::feed(const std::vector<RowInput>& feeds) {
  const torch::NoGradGuard no_gradient;
  if (marked_) marked_->feeds = feeds;
  const auto steps = core::max_of(
      feeds, [](const auto& feed) { return std::ssize(feed.tokens); }, 1);
  auto batch = nn::Batch::padding(rows_, steps);  // texts end together; padding precedes them
  const auto longest_source =
      core::max_of(feeds, [](const auto& feed) { return std::ssize(feed.source); });
  if (longest_source > 0) batch.source = torch::full({rows_, longest_source}, -1, torch::kInt64);
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const auto& feed = feeds[static_cast<std::size_t>(row)];
    const auto n = static_cast<std::int64_t>(feed.tokens.size());
    auto& fed = fed_[static_cast<std::size_t>(row)];
    if (feed.fresh || unused_) {
      batch.fresh[row] = true;
      fed = 0;
    }
    if (!feed.source.empty())
      batch.source[row].narrow(0, 0, std::ssize(feed.source)).copy_(torch::tensor(feed.source));
    if (n == 0) continue;
    batch.inputs[row].narrow(0, steps - n, n).copy_(torch::tensor(feed.tokens));
    batch.place.run[row].narrow(0, steps - n, n).fill_(row);
    batch.place.position[row].narrow(0, steps - n, n).copy_(torch::arange(fed, fed + n));
    fed += n;
    for (std::int64_t t = steps - n; t < steps; ++t) places.push_back(row * steps + t);
  }
  batch.targets = batch.inputs;
  unused_ = false;
  const nn::Hidden hidden = model_.architecture->forward(batch.to(device_), &state_);
  const auto index = torch::tensor(places, torch::kInt64).to(device_);
  return hidden.flatten().select(index);
}

void ModuleEngine::select(const std::vector<std::int64_t>& rows) {
  state_.select(torch::tensor(rows, torch::kInt64));
  fed_ = chosen(fed_, rows);
  if (marked_) {
    marked_->state.select(torch::tensor(rows, torch::kInt64));
    marked_->fed = chosen(marked_->fed, rows);
    marked_->feeds = chosen(marked_->feeds, rows);
  }
  rows_ = static_cast<std::int64_t>(rows.size());
}

void ModuleEngine::mark() {
  marked_ = {state_, fed_, {}};
  for (auto& [name, tensor] : marked_->state.tensors) tensor = tensor.clone();
}

void ModuleEngine::roll_back(const std::vector<std::int64_t>& tokens) {
  auto marked = std::move(*marked_);
  marked_.reset();
  std::int64_t all = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& fed = marked.feeds[i].tokens;
    fed.resize(fed.size() - static_cast<std::size_t>(tokens[i]));
    all += tokens[i];
  }
  if (all == 0) return;
  state_ = std::move(marked.state), fed_ = std::move(marked.fed);
  feed(marked.feeds);
}

DecodeError compare(Engine& reference, Engine& other, const std::vector<std::int64_t>& tokens) {
  const torch::NoGradGuard no_gradient;
  DecodeError error;
  reference.open(1);
  other.open(1);
  for (const auto token : tokens) {
    const auto rows = [&](Engine& engine) {
      const auto hidden = engine.feed({RowInput{{token}}});
      return engine.head().log_probs(hidden.output, nullptr).to(torch::kCPU, torch::kFloat64);
    };
    const auto p = rows(reference), q = rows(other);
    const auto difference = p - q;
    error.rms += difference.square().mean().item<double>();
    error.max = std::max(error.max, difference.abs().max().item<double>());
    error.divergence += (p.exp() * difference).sum().item<double>();
    error.same_best += p.argmax(1).equal(q.argmax(1)) ? 1 : 0;
  }
  const auto n = static_cast<double>(tokens.size());
  error.rms = std::sqrt(error.rms / n);
  error.divergence /= n;
  error.same_best /= n;
  reference.open(0);
  other.open(0);
  return error;
}

void PieceSize::took(std::int64_t tokens, std::chrono::duration<double> time, bool shared) {
  const std::chrono::duration<double> wanted = shared ? kShared : kAlone;
  const auto fitting = static_cast<double>(tokens) * (wanted / std::max(time, wanted / 1e6));
  // A piece that is shorter than it may be says only that so many tokens fit.
  const auto least = time <= wanted ? tokens_ : 1;
  tokens_ = std::clamp(
      static_cast<std::int64_t>(fitting), std::min(least, tokens_), std::min(2 * tokens_, kMost));
}

std::int64_t Pace::begin(Kind kind) {
  kind_ = kind;
  begun_ = std::chrono::steady_clock::now();
  return size().tokens();
}

void Pace::end(std::int64_t tokens) {
  const auto time = std::chrono::steady_clock::now() - begun_;
  const auto kind = kind_;
  const bool shared = between_();
  kind_ = kind;  // another work of this pace may have run between
  size().took(tokens, time, shared);
}

}  // namespace infer
