#include "infer/generate/decode_session.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "infer/loops/make_engine.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kPiece = 1024;     // tokens fed at once, at most: what bounds the memory
constexpr std::int64_t kLeastShared = 8;  // tokens of a beginning that is worth a call of its own
constexpr std::int64_t kLearnBytes = 64 << 20;  // of whole rows of log-probabilities

std::int64_t size_of(const std::vector<std::int64_t>& tokens) {
  return static_cast<std::int64_t>(tokens.size());
}

// How many tokens all prompts begin with, without the last one of any.
std::int64_t shared_beginning(const std::vector<std::vector<std::int64_t>>& prompts) {
  auto shared = size_of(prompts[0]);
  for (const auto& prompt : prompts) {
    const auto most = std::min(shared, size_of(prompt) - 1);
    shared = std::mismatch(prompt.begin(), prompt.begin() + most, prompts[0].begin()).first -
             prompt.begin();
  }
  return shared;
}

}  // namespace

// Another model of the ensemble. Its rows hold the same texts; its only memory is its State.
struct Session::Beside {
  Beside(const BesideModel& own, torch::Device device, Precision precision, bool record)
      : engine(make_engine(*own.loaded.model, device, precision, record)),
        session(*engine, *own.loaded.model, window_of(own), {}, device) {}
  static std::int64_t window_of(const BesideModel& own) {
    return plan_windows(own.windows, *own.loaded.model, own.loaded.facts).window;
  }
  std::unique_ptr<Engine> engine;
  Session session;
};

Session::Session(Engine& engine, nn::Model& model, std::int64_t window, const MemoryPlan& memory,
                 torch::Device device, Precision precision, const RetrievePlan& retrieve,
                 bool record)
    : engine_(engine),
      model_(model),
      window_(window),
      memory_plan_(memory),
      device_(device),
      carry_(model.architecture->carry()) {
  for (const auto& model : memory.beside()) {
    beside_.push_back(std::make_unique<Beside>(*model, device, precision, record));
    beside_.back()->session.keeps_prompts_ = memory.online;
  }
  if (retrieve.any()) prefixed_.emplace(engine, retrieve, window);
}

Session::~Session() = default;

bool Session::alone(std::size_t prompt_length) const {
  if (carry_ == nn::Carry::forget && static_cast<std::int64_t>(prompt_length) > window_)
    return true;
  return std::any_of(beside_.begin(), beside_.end(),
                     [&](const auto& other) { return other->session.alone(prompt_length); });
}

std::int64_t Session::forgotten_of(std::int64_t prompt_length) const {
  if (carry_ == nn::Carry::constant || prompt_length <= window_) return 0;
  if (carry_ == nn::Carry::forget || prefixed_) return prompt_length - window_;
  const std::int64_t half = window_ / 2, renewed = window_ - half;
  return (prompt_length - window_ + renewed - 1) / renewed * renewed;
}

void Session::start(const std::vector<std::vector<std::int64_t>>& prompts,
                    const std::vector<std::vector<std::int64_t>>& sources) {
  for (const auto* texts : {&prompts, &sources})
    for (const auto& text : *texts)
      for (const auto id : text)
        if (id < 0 || id >= model_.vocabulary)
          core::fail(core::Code::bad_data, "token {} is outside the model's vocabulary of {}", id,
                     model_.vocabulary);
  const auto n = static_cast<std::int64_t>(prompts.size());
  engine_.open(n);
  texts_.assign(prompts.size(), {});
  for (std::size_t i = 0; i < sources.size(); ++i) texts_[i].source = sources[i];
  ahead_.assign(prompts.size(), {});
  searches_ = searches();
  memory_.emplace(memory_plan_, window_, /*streaming=*/true, model_, n);
  for (std::int64_t row = 0; row < n; ++row)
    memory_->read(row, prompts[static_cast<std::size_t>(row)]);
  for (const auto& other : beside_) other->session.start(prompts, sources);
  if (!prefixed_ || memory_->remembers()) {
    const Fed fed = sources.empty() ? feed_prompts(prompts) : feed(prompts);
    if (memory_plan_.online && !prefixed_) learn_weights(fed, prompts);
    remember(fed, prompts);
    keep_last(fed);
    if (keeps_prompts_) prompt_f_ = fed.f;
  }
  if (!prefixed_) return;
  for (std::size_t i = 0; i < prompts.size(); ++i) texts_[i].length = size_of(prompts[i]);
  prefixed_->start(prompts);
  keep_best();
}

// Returns how many of `left` tokens to feed next. `feed` receives the tokens to feed again before
// them.
std::int64_t Session::next_piece(Text& text, std::int64_t left, Feed& feed) const {
  if (left == 0) return 0;
  if (text.length == 0) feed.source = text.source;
  if (carry_ == nn::Carry::constant) return std::min(left, kPiece);
  if (text.seen < window_) return std::min({left, window_ - text.seen, kPiece});
  if (carry_ == nn::Carry::forget) return std::min(left, std::max<std::int64_t>(1, window_ / 2));
  const auto again = window_ / 2;
  feed.fresh = true;
  feed.source = text.source;
  feed.tokens.assign(text.recent.end() - again, text.recent.end());
  text.seen = again;
  return std::min(left, window_ - again);
}

Session::Fed Session::feed(const std::vector<std::vector<std::int64_t>>& tokens) {
  std::vector<std::int64_t> done(tokens.size(), 0);
  std::vector<std::vector<Tensor>> f(tokens.size()), g(tokens.size());
  for (;;) {
    std::vector<Feed> feeds(tokens.size());
    std::vector<std::int64_t> pieces;
    std::int64_t longest = 0;
    bool full = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      pieces.push_back(next_piece(texts_[i], size_of(tokens[i]) - done[i], feeds[i]));
      longest = std::max(longest, pieces[i]);
      full |= texts_[i].seen + pieces[i] > window_;
    }
    if (longest == 0) break;
    if (full && carry_ == nn::Carry::forget) engine_.forget(window_ - longest);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto from = tokens[i].begin() + done[i];
      feeds[i].tokens.insert(feeds[i].tokens.end(), from, from + pieces[i]);
      auto& text = texts_[i];
      text.seen = std::min(window_, text.seen + pieces[i]);
      text.length += pieces[i];
      if (carry_ != nn::Carry::reencode) continue;
      text.recent.insert(text.recent.end(), from, from + pieces[i]);
      if (size_of(text.recent) > 2 * window_)
        text.recent.erase(text.recent.begin(), text.recent.end() - window_);
    }
    const nn::Hidden hidden = engine_.feed(feeds);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      end += size_of(feeds[i].tokens);
      if (pieces[i] == 0) continue;
      f[i].push_back(hidden.f.slice(0, end - pieces[i], end));
      g[i].push_back(hidden.g.slice(0, end - pieces[i], end));
      done[i] += pieces[i];
    }
  }
  Fed fed;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    fed.f.push_back(f[i].size() == 1 ? f[i][0] : torch::cat(f[i]));
    fed.g.push_back(g[i].size() == 1 ? g[i][0] : torch::cat(g[i]));
  }
  return fed;
}

// Reads what the prompts begin with in one row, which then becomes all rows.
Session::Fed Session::feed_prompts(const std::vector<std::vector<std::int64_t>>& prompts) {
  const auto shared = prompts.size() > 1 ? shared_beginning(prompts) : 0;
  if (shared < kLeastShared || shared >= window_) return feed(prompts);
  const auto n = prompts.size();
  const Text fresh = texts_[0];
  engine_.open(1);
  texts_.assign(1, fresh);
  const auto begin = prompts[0].begin();
  const Fed first = feed({{begin, begin + shared}});
  engine_.select(std::vector<std::int64_t>(n, 0));
  texts_.assign(n, Text(texts_[0]));
  std::vector<std::vector<std::int64_t>> rests;
  for (const auto& prompt : prompts) rests.emplace_back(prompt.begin() + shared, prompt.end());
  Fed fed = feed(rests);
  const bool whole = memory_->remembers() || memory_plan_.online || keeps_prompts_;
  for (std::size_t i = 0; whole && i < n; ++i) {
    fed.f[i] = torch::cat({first.f[0], fed.f[i]});
    fed.g[i] = torch::cat({first.g[0], fed.g[i]});
  }
  return fed;
}

// All of the prompts but their last tokens, whose labels are open. Prompts end at the same step.
void Session::remember(const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts) {
  const auto n = rows();
  std::int64_t steps = 0;
  for (const auto& prompt : prompts) steps = std::max(steps, size_of(prompt) - 1);
  if (!memory_->remembers() || steps == 0) return;
  const auto options = fed.f[0].options();
  const Tensor f = torch::zeros({steps, n, fed.f[0].size(1)}, options);
  const Tensor g = torch::zeros({steps, n, fed.g[0].size(1)}, options);
  const Tensor labels = torch::zeros({steps, n}, torch::kInt64), position = labels.clone();
  const Tensor run = torch::full({steps, n}, -1, torch::kInt64);
  for (std::int64_t row = 0; row < n; ++row) {
    const auto& prompt = prompts[static_cast<std::size_t>(row)];
    const auto known = size_of(prompt) - 1;
    if (known == 0) continue;
    const auto put = [&](const Tensor& to, const Tensor& from) {
      to.select(1, row).narrow(0, steps - known, known).copy_(from);
    };
    put(f, fed.f[static_cast<std::size_t>(row)].narrow(0, 0, known));
    put(g, fed.g[static_cast<std::size_t>(row)].narrow(0, 0, known));
    put(labels, torch::tensor(prompt).narrow(0, 1, known));
    put(position, torch::arange(known));
    put(run, torch::full({known}, row, torch::kInt64));
  }
  memory_->append(f.flatten(0, 1), g.flatten(0, 1), nn::upload(labels.flatten(), device_),
                  nn::Place{run, torch::zeros_like(run), position}.flatten());
}

// Scores the prompts' tokens to learn the weights of sources.
void Session::learn_weights(const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts) {
  const torch::NoGradGuard no_gradient;
  const std::int64_t block =
      std::max<std::int64_t>(1, kLearnBytes / (8 * std::max<std::int64_t>(1, model_.vocabulary)));
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    const std::int64_t known = size_of(prompts[row]) - 1;
    if (known == 0) continue;
    StreamMemory learner(memory_plan_, window_, /*streaming=*/true, model_);
    Window window;
    window.f = fed.f[row].slice(0, 0, known), window.g = fed.g[row].slice(0, 0, known);
    window.targets = nn::upload(torch::tensor(prompts[row]).slice(0, 1), device_);
    const Tensor zeros = torch::zeros({known}, torch::kInt64);
    window.place = {zeros, zeros, torch::arange(known)};
    window.before = {prompts[row][0]};
    for (std::int64_t begin = 0; begin < known; begin += block) {
      const std::int64_t end = std::min(begin + block, known);
      std::vector<Tensor> beside;
      for (const auto& other : beside_)
        beside.push_back(other->engine->head().log_probs(
            other->session.prompt_f_[row].slice(0, begin, end), nullptr));
      learner.log_probs(engine_.head(), window, begin, end, nullptr, 0, beside);
    }
    memory_->take_weights(static_cast<std::int64_t>(row), learner);
  }
}

// Keeps the hidden states of the last token before the guesses, and those of the guesses.
void Session::keep_last(const Fed& fed) {
  std::vector<Tensor> f, g;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    auto& ahead = ahead_[i];
    const auto last = fed.f[i].size(0) - std::ssize(ahead.tokens) - 1;
    f.push_back(fed.f[i].slice(0, last, last + 1));
    g.push_back(fed.g[i].slice(0, last, last + 1));
    ahead.f = fed.f[i].slice(0, last + 1), ahead.g = fed.g[i].slice(0, last + 1);
  }
  f_ = torch::cat(f);
  g_ = torch::cat(g);
}

void Session::keep_best() {
  const nn::Hidden best = prefixed_->best();
  f_ = best.f, g_ = best.g;
}

nn::Place Session::last_place() const {
  std::vector<std::int64_t> positions;
  for (const auto& text : texts_) positions.push_back(text.length - 1);
  const Tensor run = torch::arange(rows());
  return {run, torch::zeros_like(run), torch::tensor(positions, torch::kInt64)};
}

Tensor Session::log_probs_there() {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> beside;
  for (const auto& other : beside_) beside.push_back(other->session.log_probs());
  const Tensor rows = memory_->any()
                          ? memory_->log_probs(engine_.head(), f_, g_, last_place(), beside)
                      : prefixed_ ? prefixed_->log_probs(engine_.head())
                                  : engine_.head().log_probs(f_, nullptr);
  return rows.to(torch::kFloat32).contiguous();
}

SearchCounts Session::searches() const {
  SearchCounts counts = searches_;
  if (memory_) counts.add(memory_->searches());
  return counts;
}

// Returns how many guesses fit after one more token. Old tokens are dropped in all rows at once, so
// no row reads ahead once one row is full.
std::int64_t Session::room(const Text& text) const {
  if (!engine_.takes_back()) return 0;
  if (carry_ == nn::Carry::constant) return kPiece - 1;
  const bool full = carry_ == nn::Carry::forget &&
                    std::any_of(texts_.begin(), texts_.end(),
                                [&](const auto& any) { return any.seen >= window_; });
  return full ? 0 : std::max<std::int64_t>(0, window_ - text.seen - 1);
}

// Returns whether each token equals its text's guess. The tokens then become the last ones.
bool Session::came(const std::vector<std::int64_t>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& ahead = ahead_[i];
    if (ahead.left() == 0 || ahead.tokens[static_cast<std::size_t>(ahead.next)] != tokens[i])
      return false;
  }
  std::vector<Tensor> f, g;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& ahead = ahead_[i];
    f.push_back(ahead.f.slice(0, ahead.next, ahead.next + 1));
    g.push_back(ahead.g.slice(0, ahead.next, ahead.next + 1));
    ++ahead.next, ++texts_[i].length;
  }
  f_ = torch::cat(f), g_ = torch::cat(g);
  return true;
}

// Removes guesses that did not come from the model's State.
void Session::take_back() {
  std::vector<std::int64_t> left;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    auto& text = texts_[i];
    left.push_back(ahead_[i].left());
    text.seen -= left[i];
    if (carry_ == nn::Carry::reencode)
      text.recent.resize(text.recent.size() - static_cast<std::size_t>(left[i]));
    ahead_[i] = {};
  }
  if (std::any_of(left.begin(), left.end(), [](auto n) { return n > 0; })) engine_.take_back(left);
}

void Session::advance(const std::vector<std::int64_t>& tokens,
                      const std::vector<std::vector<std::int64_t>>& guesses) {
  if (memory_->remembers())
    memory_->append(f_, g_, nn::upload(torch::tensor(tokens, torch::kInt64), device_),
                    last_place());
  for (std::int64_t row = 0; row < rows(); ++row)
    memory_->read(row, {&tokens[static_cast<std::size_t>(row)], 1});
  for (const auto& other : beside_) other->session.advance(tokens, guesses);
  if (prefixed_) {
    for (auto& text : texts_) ++text.length;
    prefixed_->advance(tokens);
    return keep_best();
  }
  if (came(tokens)) return;
  take_back();
  std::vector<std::vector<std::int64_t>> fed;
  bool guessed = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    fed.push_back({tokens[i]});
    if (guesses.empty() || guesses[i].empty()) continue;
    const auto n = std::min(room(texts_[i]), std::ssize(guesses[i]));
    ahead_[i].tokens.assign(guesses[i].begin(), guesses[i].begin() + n);
    fed[i].insert(fed[i].end(), guesses[i].begin(), guesses[i].begin() + n);
    guessed |= n > 0;
  }
  if (guessed) engine_.mark();
  const Fed made = feed(fed);
  for (std::size_t i = 0; i < tokens.size(); ++i) texts_[i].length -= ahead_[i].left();
  keep_last(made);
}

void Session::select(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> same(texts_.size());
  std::iota(same.begin(), same.end(), 0);
  if (rows == same) return;
  if (prefixed_) {
    prefixed_->select(rows);
  } else {
    engine_.select(rows);
  }
  const Tensor index = torch::tensor(rows, torch::kInt64);
  memory_->select(index);
  f_ = f_.index_select(0, nn::upload(index, f_.device()));
  g_ = g_.index_select(0, nn::upload(index, g_.device()));
  std::vector<Text> texts;
  std::vector<Ahead> ahead;
  for (const auto row : rows) {
    texts.push_back(texts_[static_cast<std::size_t>(row)]);
    ahead.push_back(ahead_[static_cast<std::size_t>(row)]);
  }
  texts_ = std::move(texts), ahead_ = std::move(ahead);
  for (const auto& other : beside_) other->session.select(rows);
}

}  // namespace infer
