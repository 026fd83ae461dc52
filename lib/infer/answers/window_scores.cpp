#include "infer/answers/window_scores.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kBlockBytes = 64 << 20;  // bytes of whole rows of log-probabilities

std::int64_t block_of(std::int64_t numbers_a_row) {
  return std::max<std::int64_t>(1, kBlockBytes / (8 * numbers_a_row));
}

}  // namespace

WindowScores::WindowScores(nn::Model& model, nn::Head& head, const WindowPlan& windows,
    const MemoryPlan& memory, std::int64_t words, TokenWants wants)
    : model_(model), head_(head), window_(windows.window), plan_(memory), beside_(memory.beside()),
      memory_(memory, windows.window, windows.carried, model), words_(words),
      head_words_(model.vocabulary), wants_(wants) {}

// log_probs is (R, V). targets is (R) on the CPU.
void WindowScores::add(const Tensor& log_probs, const Tensor& targets, TokenScores& to) const {
  const Tensor words = log_probs.slice(1, 0, words_);
  const Tensor own = log_probs.gather(1, targets.to(log_probs.device()).unsqueeze(1)).squeeze(1);
  const Tensor exact = own.to(torch::kCPU, torch::kFloat64).contiguous();
  const Tensor best = words.argmax(1).to(torch::kCPU) == targets;
  const auto values = exact.accessor<double, 1>();
  const auto is_best = best.accessor<bool, 1>();
  for (std::int64_t i = 0; i < exact.size(0); ++i) {
    if (std::isnan(values[i]))
      core::bad_data("a log-probability is not a number; the model's weights may be damaged");
    to.log_prob.push_back(values[i]);
    to.best.push_back(is_best[i]);
  }
}

// Adds details of rows that add() received. shares is (R, n).
void WindowScores::add_details(
    const Tensor& log_probs, const Tensor& targets, const Tensor& shares, TokenScores& to) const {
  const Tensor words = log_probs.slice(1, 0, words_);
  const Tensor own = log_probs.gather(1, targets.to(log_probs.device()).unsqueeze(1));
  const Tensor rank = (words > own).sum(1).to(torch::kCPU);
  const auto [most, which] = words.topk(std::min(wants_.likely, words.size(1)), 1);
  const Tensor likely = most.to(torch::kCPU, torch::kFloat64).exp(), ids = which.to(torch::kCPU);
  for (std::int64_t i = 0; i < targets.size(0); ++i) {
    TokenDetails& details = to.details.emplace_back();
    details.rank = rank[i].item<std::int64_t>();
    for (std::int64_t j = 0; j < likely.size(1); ++j)
      details.likely.emplace_back(ids[i][j].item<std::int64_t>(), likely[i][j].item<double>());
    for (std::int64_t j = 0; j < shares.size(1); ++j)
      details.shares.push_back(shares[i][j].item<double>());
  }
}

// Returns how many rows the next piece has: at most `block`.
std::int64_t WindowScores::piece(std::int64_t block) const {
  return pace_ == nullptr ? block : std::min(block, pace_->begin(Pace::Kind::score));
}

void WindowScores::end_piece(std::int64_t rows) const {
  if (pace_ != nullptr) pace_->end(rows);
}

// Scores with the head alone, all rows together.
void WindowScores::score_alone(const std::vector<WindowToScore>& windows) {
  std::vector<Tensor> f, targets;
  std::vector<TokenScores*> to;
  for (const auto& of : windows) {
    f.push_back(of.window.output.slice(0, of.window.first_scored));
    targets.push_back(of.window.targets.slice(0, of.window.first_scored).to(torch::kCPU));
    to.insert(to.end(), static_cast<std::size_t>(targets.back().size(0)), of.to);
  }
  const Tensor rows = torch::cat(f), labels = torch::cat(targets);
  const std::int64_t block = block_of(head_words_);
  for (std::int64_t begin = 0, end = 0; begin < rows.size(0); begin = end) {
    end = std::min(begin + piece(block), rows.size(0));
    const Tensor log_probs = head_.log_probs(rows.slice(0, begin, end), nullptr);
    for (std::int64_t i = begin; i < end;) {  // one window at a time
      std::int64_t next = i;
      TokenScores* const own = to[static_cast<std::size_t>(i)];
      while (next < end && to[static_cast<std::size_t>(next)] == own) ++next;
      const Tensor its = log_probs.slice(0, i - begin, next - begin);
      add(its, labels.slice(0, i, next), *own);
      if (wants_.details)
        add_details(its, labels.slice(0, i, next), torch::ones({next - i, 1}), *own);
      i = next;
    }
    end_piece(end - begin);
  }
}

// `asked` is for the whole batch; null: each piece asks for itself. The window's scored rows begin
// at `offset` in it.
void WindowScores::score_with_memory(
    const WindowToScore& of, const StreamMemory::Asked* asked, std::int64_t offset) {
  if (of.fresh) memory_.clear();
  if (of.learned) memory_.take_weights(0, *of.learned);
  memory_.hold_weights(of.continues && !plan_.weights_follow);
  if (of.past.output.defined()) memory_.remember(of.past);
  const Window& window = of.window;
  const std::int64_t rows = window.targets.size(0), first = window.first_scored;
  const std::int64_t block = block_of(2 * head_words_ + rows + plan_.reach());
  for (std::int64_t begin = first, end = first; begin < rows; begin = end) {
    end = std::min(begin + piece(block), rows);
    const std::size_t scored = of.to->log_prob.size();
    const auto at = static_cast<std::int64_t>(scored);
    std::vector<Tensor> beside;
    for (std::size_t i = 0; i < beside_.size(); ++i) {
      const Tensor f = of.beside->at(i).slice(0, at, at + end - begin);
      beside.push_back(beside_[i]->loaded.model->head->log_probs(f, nullptr));
    }
    const Tensor log_probs =
        memory_.log_probs(head_, window, begin, end, asked, offset + begin - first, beside);
    const Tensor targets = window.targets.slice(0, begin, end).to(torch::kCPU);
    add(log_probs, targets, *of.to);
    if (wants_.details) {
      const Tensor of_targets =
          log_probs.gather(1, targets.to(log_probs.device()).unsqueeze(1)).squeeze(1);
      add_details(
          log_probs, targets, memory_.source_shares(targets, of_targets, &window, begin), *of.to);
    }
    for (std::int64_t i = 0; wants_.citer != nullptr && i < end - begin; ++i)
      of.to->cited.push_back(
          wants_.citer->cite(memory_, {i, targets[i].item<std::int64_t>(),
                                          of.to->log_prob[scored + static_cast<std::size_t>(i)]}));
    end_piece(end - begin);
  }
  memory_.remember(window);
}

std::shared_ptr<const OnlineWeights> WindowScores::learn(const std::vector<std::int64_t>& context,
    const nn::Hidden& hidden, const std::vector<Tensor>& beside) const {
  const auto scores = [&](std::int64_t begin, std::int64_t end) {
    std::vector<Tensor> rows;
    for (std::size_t i = 0; i < beside_.size(); ++i)
      rows.push_back(
          beside_[i]->loaded.model->head->log_probs(beside[i].slice(0, begin, end), nullptr));
    return rows;
  };
  WeightsLearner learner(plan_, window_, model_);
  for (const auto known = std::ssize(context) - 1; learner.scored() < known;)
    end_piece(learner.learn(head_, context, hidden, scores, piece(known)));
  return std::make_shared<const OnlineWeights>(learner.weights());
}

// Returns the features of the model's own distribution that decide whether stores are searched, for
// all rows.
Tensor WindowScores::confidence(const std::vector<WindowToScore>& windows) {
  std::vector<Tensor> f, targets;
  for (const auto& of : windows) {
    f.push_back(of.window.output.slice(0, of.window.first_scored));
    targets.push_back(of.window.targets.slice(0, of.window.first_scored));
  }
  return head_rows(head_, torch::cat(f), torch::cat(targets), true).confidence;
}

void WindowScores::score(const std::vector<WindowToScore>& windows) {
  const torch::NoGradGuard no_gradient;
  if (windows.empty()) return;
  if (wants_.hidden) {
    for (const auto& of : windows)
      of.to->hidden.push_back(of.window.output.slice(0, of.window.first_scored));
    return;
  }
  if (!memory_.any()) return score_alone(windows);
  if (pace_ != nullptr) {
    for (const auto& of : windows) score_with_memory(of, nullptr, 0);
    return;
  }
  std::vector<Tensor> queries, targets;
  Ask ask;
  for (const auto& of : windows) {
    queries.push_back(of.window.key.slice(0, of.window.first_scored));
    targets.push_back(of.window.targets.slice(0, of.window.first_scored).to(torch::kCPU));
    ask.lengths.push_back(targets.back().size(0));
  }
  ask.queries = torch::cat(queries), ask.targets = torch::cat(targets);
  if (memory_.asks_confidence()) ask.confidence = confidence(windows);
  ask.own = wants_.own;
  const auto asked = memory_.ask(ask);
  std::int64_t begin = 0;
  for (const auto& of : windows) {
    score_with_memory(of, &asked, begin);
    begin += of.window.targets.size(0) - of.window.first_scored;
  }
}

}  // namespace infer
