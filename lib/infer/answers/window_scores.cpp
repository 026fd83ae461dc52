#include "infer/answers/window_scores.h"

namespace infer {
namespace {

constexpr std::int64_t kBlockBytes = 64 << 20;  // bytes of whole rows of log-probabilities

std::int64_t block_of(std::int64_t numbers_a_row) {
  return std::max<std::int64_t>(1, kBlockBytes / (8 * numbers_a_row));
}

using Tokens = std::vector<std::int64_t>;

// Returns how many tokens of a window are scored.
std::int64_t scored_tokens(const WindowToScore& of) {
  return of.window.targets.size(0) - of.window.first_scored;
}
// Returns the rows of these tokens in a tensor of each window.
Tensor scored_rows(const std::vector<WindowToScore>& windows, Tensor Window::*part) {
  return torch::cat(core::mapped(
      windows, [&](const auto& of) { return (of.window.*part).slice(0, of.window.first_scored); }));
}

}  // namespace

WindowScores::WindowScores(nn::Model& model, nn::Head& head, const WindowPlan& windows,
    const MemoryPlan& memory, std::int64_t vocabulary, TokenWants wants)
    : model_(model), head_(head), window_(windows.window), doubt_(windows.dynamic.doubt()),
      plan_(memory), ensemble_(memory.models()),
      memory_(memory, windows.window, windows.carried, model), vocabulary_(vocabulary),
      head_vocabulary_(model.vocabulary), wants_(wants) {}

// log_probs is (R, V). targets is (R) on the CPU.
void WindowScores::add(const Tensor& log_probs, const Tensor& targets, TokenScores& to) const {
  const Tensor scores = log_probs.slice(1, 0, vocabulary_);
  const Tensor own = log_probs.gather(1, targets.to(log_probs.device()).unsqueeze(1)).squeeze(1);
  const Tensor exact = own.to(torch::kCPU, torch::kFloat64).contiguous();
  const Tensor best = scores.argmax(1).to(torch::kCPU) == targets;
  const auto values = exact.accessor<double, 1>();
  const auto is_best = best.accessor<bool, 1>();
  for (std::int64_t i = 0; i < exact.size(0); ++i) {
    if (std::isnan(values[i])) core::bad_data("a log-probability is not a number; {}", doubt_);
    to.log_prob.push_back(values[i]);
    to.best.push_back(is_best[i]);
  }
}

// Adds details of rows that add() received. shares is (R, n).
void WindowScores::add_details(
    const Tensor& log_probs, const Tensor& targets, const Tensor& shares, TokenScores& to) const {
  const Tensor scores = log_probs.slice(1, 0, vocabulary_);
  const Tensor own = log_probs.gather(1, targets.to(log_probs.device()).unsqueeze(1));
  const Tensor rank = (scores > own).sum(1).to(torch::kCPU);
  const auto [most, which] = scores.topk(std::min(wants_.likely, scores.size(1)), 1);
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
  const Tensor rows = scored_rows(windows, &Window::output),
               labels = scored_rows(windows, &Window::targets).to(torch::kCPU);
  std::vector<TokenScores*> to;
  for (const auto& of : windows)
    to.insert(to.end(), static_cast<std::size_t>(scored_tokens(of)), of.to);
  const std::int64_t block = block_of(head_vocabulary_);
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
  const std::int64_t block = block_of(2 * head_vocabulary_ + rows + plan_.reach());
  for (std::int64_t begin = first, end = first; begin < rows; begin = end) {
    end = std::min(begin + piece(block), rows);
    const std::size_t scored = of.to->log_prob.size();
    const auto at = static_cast<std::int64_t>(scored);
    std::vector<Tensor> ensemble;
    for (std::size_t i = 0; i < ensemble_.size(); ++i) {
      const Tensor f = of.other_f->at(i).slice(0, at, at + end - begin);
      ensemble.push_back(ensemble_[i]->loaded.model->head->log_probs(f, nullptr));
    }
    const Tensor log_probs =
        memory_.log_probs(head_, window, begin, end, asked, offset + begin - first, ensemble);
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
    const nn::Hidden& hidden, const std::vector<Tensor>& ensemble) const {
  const auto scores = [&](std::int64_t begin, std::int64_t end) {
    return core::generated(ensemble_.size(), [&](std::size_t i) {
      return ensemble_[i]->loaded.model->head->log_probs(ensemble[i].slice(0, begin, end), nullptr);
    });
  };
  WeightsLearner learner(plan_, window_, model_);
  for (const auto known = std::ssize(context) - 1; learner.scored() < known;)
    end_piece(learner.learn(head_, context, hidden, scores, piece(known)));
  return std::make_shared<const OnlineWeights>(learner.weights());
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
  Lookup lookup;
  lookup.lengths = core::mapped(windows, scored_tokens);
  lookup.queries = scored_rows(windows, &Window::key);
  const Tensor targets = scored_rows(windows, &Window::targets);
  lookup.targets = targets.to(torch::kCPU);
  if (memory_.asks_confidence())  // decides whether stores are searched
    lookup.confidence =
        head_rows(head_, scored_rows(windows, &Window::output), targets, true).confidence;
  lookup.skip = wants_.skip;
  const auto asked = memory_.look_up(lookup);
  std::int64_t begin = 0;
  for (const auto& of : windows) {
    score_with_memory(of, &asked, begin);
    begin += scored_tokens(of);
  }
}

std::int64_t TokenTree::longest_branch() const {
  return core::max_of(branches, [](const auto& branch) { return std::ssize(branch); });
}

TreeEncoder::TreeEncoder(Engine& engine, const nn::Model& model, const WindowPlan& plan)
    : engine_(engine), plan_(plan),
      forgets_(plan.carried && model.architecture->carry() == nn::Carry::forget),
      in_calls_(nn::arch_facts(model.options.arch).layer_memory),
      again_(!plan.carried && in_calls_) {}

void TreeEncoder::open(std::int64_t rows) {
  engine_.open(rows);
  fed_ = false;
  kept_.clear();
}

nn::Hidden TreeEncoder::go_on(const Tokens& block, bool fresh) {
  if (fresh) open(1);
  return feed({&block})[0];
}

bool TreeEncoder::fits(std::span<const TokenTree> trees, const TokenTree& one_more) const {
  if (trees.empty()) return true;
  if (forgets_) return false;
  std::int64_t rows = 0, longest = 0;
  const auto add = [&](const TokenTree& tree) {
    rows += std::max<std::int64_t>(1, std::ssize(tree.branches));
    longest = std::max(longest, std::ssize(tree.stem) + tree.longest_branch());
  };
  for (const auto& tree : trees) add(tree);
  add(one_more);
  return rows * longest <= plan_.batch_tokens;
}

// Feeds these tokens to the engine's rows. Rows with null or no tokens do not advance. Returns f
// and g of each row.
std::vector<nn::Hidden> TreeEncoder::feed(const std::vector<const Tokens*>& rows) {
  std::int64_t longest = 0;
  for (const auto* row : rows)
    if (row != nullptr) longest = std::max(longest, std::ssize(*row));
  const std::int64_t block = plan_.carried ? plan_.stride : std::max<std::int64_t>(1, longest);
  std::vector<std::vector<nn::Hidden>> pieces(rows.size());
  for (std::int64_t begin = 0, end = 0; begin < longest; begin = end) {
    const bool new_block = begin % block == 0;
    if (new_block && forgets_ && fed_) engine_.forget(plan_.window - plan_.stride);
    fed_ = true;
    end = std::min(longest, (begin / block + 1) * block);
    const bool divided = pace_ != nullptr && !in_calls_;
    const auto most = pace_ != nullptr ? pace_->begin(Pace::Kind::encode) : 0;
    if (divided) end = std::min(end, begin + std::max<std::int64_t>(1, most / std::ssize(rows)));
    std::vector<RowInput> feeds(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == nullptr) continue;
      const auto size = std::ssize(*rows[i]);
      feeds[i].tokens.assign(
          rows[i]->begin() + std::min(begin, size), rows[i]->begin() + std::min(end, size));
    }
    const nn::Hidden hidden = engine_.feed(feeds);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto n = std::ssize(feeds[i].tokens);
      if (n > 0) pieces[i].push_back(hidden.slice(at, at + n));
      at += n;
    }
    if (pace_ != nullptr) pace_->end((end - begin) * std::ssize(rows));
  }
  return core::mapped(pieces, nn::Hidden::concatenate);
}

// Each stem is a row of the engine.
std::vector<nn::Hidden> TreeEncoder::encode_stems(std::span<const TokenTree> trees) {
  if (trees.size() == 1 && trees[0].stem == kept_) return {kept_hidden_};
  open(std::ssize(trees));
  return feed(core::mapped(trees, [](const auto& tree) { return &tree.stem; }));
}

std::vector<EncodedTree> TreeEncoder::encode(std::span<const TokenTree> trees, bool keep) {
  if (again_) return encode_again(trees);
  const auto stems = std::ssize(trees);
  std::vector<EncodedTree> encoded(trees.size());
  const auto hidden = encode_stems(trees);
  kept_.clear();
  std::vector<const Tokens*> rows;
  struct Branch {
    std::int64_t tree;
    const Tokens* tokens;
    nn::Hidden* to;
  };
  std::vector<Branch> branches;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < stems; ++i) {
    const auto& tree = trees[static_cast<std::size_t>(i)];
    auto& to = encoded[static_cast<std::size_t>(i)];
    to.stem = hidden[static_cast<std::size_t>(i)];
    to.branches.resize(tree.branches.size());
    for (std::size_t j = 0; j < tree.branches.size(); ++j) {
      if (tree.branches[j].empty()) continue;
      branches.push_back({i, &tree.branches[j], &to.branches[j]});
      longest = std::max(longest, std::ssize(tree.stem) + std::ssize(tree.branches[j]));
    }
  }
  // Copies the rows of the stems. The stems stay first until all branches are encoded.
  const auto together =
      std::max<std::int64_t>(1, plan_.batch_tokens / std::max<std::int64_t>(longest, 1));
  for (std::int64_t begin = 0; begin < std::ssize(branches); begin += together) {
    const std::int64_t end = std::min(begin + together, std::ssize(branches));
    const std::int64_t kept = keep || end < std::ssize(branches) ? stems : 0;
    auto copies = core::generated(kept, std::identity());
    rows.assign(static_cast<std::size_t>(kept), nullptr);
    for (std::int64_t i = begin; i < end; ++i) {
      copies.push_back(branches[static_cast<std::size_t>(i)].tree);
      rows.push_back(branches[static_cast<std::size_t>(i)].tokens);
    }
    engine_.select(copies);
    const auto fed = feed(rows);
    for (std::int64_t i = begin; i < end; ++i)
      *branches[static_cast<std::size_t>(i)].to = fed[static_cast<std::size_t>(kept + i - begin)];
  }
  if (keep && stems == 1) {
    if (!branches.empty()) engine_.select({0});
    kept_ = trees[0].stem;
    kept_hidden_ = hidden[0];
  }
  return encoded;
}

// Encodes each branch together with its stem.
std::vector<EncodedTree> TreeEncoder::encode_again(std::span<const TokenTree> trees) {
  std::vector<EncodedTree> encoded;
  for (const auto& tree : trees) {
    EncodedTree& made = encoded.emplace_back();
    const auto read = [&](const Tokens& tokens) { return go_on(tokens, /*fresh=*/true); };
    const auto stem = std::ssize(tree.stem);
    for (const auto& branch : tree.branches) {
      Tokens whole = tree.stem;
      whole.insert(whole.end(), branch.begin(), branch.end());
      const nn::Hidden hidden = read(whole);
      if (!made.stem.output.defined()) made.stem = hidden.slice(0, stem);
      made.branches.push_back(
          branch.empty() ? nn::Hidden{} : hidden.slice(stem, std::ssize(whole)));
    }
    if (!made.stem.output.defined()) made.stem = read(tree.stem);
  }
  return encoded;
}

}  // namespace infer
