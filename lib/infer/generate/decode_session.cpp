#include "infer/generate/decode_session.h"

#include "infer/decode/paged_rows.h"
#include "infer/loops/make_engine.h"

namespace infer {
namespace {

constexpr std::int64_t kPiece = 1024;      // tokens fed at once, at most: what bounds the memory
constexpr std::int64_t kLeastShared = 8;   // tokens of a beginning that is worth a call of its own
constexpr std::int64_t kLeastKept = 16;    // tokens of a prompt that is worth a row
constexpr std::int64_t kLeastLearned = 8;  // tokens

// How many tokens all prompts begin with, without the last one of any.
std::int64_t shared_beginning(const std::vector<std::vector<std::int64_t>>& prompts) {
  auto shared = std::ssize(prompts[0]);
  for (const auto& prompt : prompts) {
    const auto most = std::min(shared, std::ssize(prompt) - 1);
    shared = std::mismatch(prompt.begin(), prompt.begin() + most, prompts[0].begin()).first -
             prompt.begin();
  }
  return shared;
}

// 0, 1, ..., n - 1.
std::vector<std::int64_t> first_numbers(std::int64_t n) {
  return core::generated(n, std::identity());
}

std::vector<Tensor> outputs_of(const std::vector<nn::Hidden>& all) {
  return core::mapped(all, &nn::Hidden::output);
}

}  // namespace

// Another model of the ensemble. Its rows hold the same texts; its only memory is its State.
struct Session::Member {
  Member(const EnsembleModel& own, torch::Device device, Precision precision, bool record)
      : engine(make_engine(*own.loaded.model, device, precision, record)),
        session(*engine, *own.loaded.model, window_of(own), {}, device) {}
  static std::int64_t window_of(const EnsembleModel& own) {
    return plan_windows(own.windows, *own.loaded.model, own.loaded.facts).window;
  }
  std::unique_ptr<Engine> engine;
  Session session;
};

Session::Session(Engine& engine, nn::Model& model, std::int64_t window, const MemoryPlan& memory,
    torch::Device device, Precision precision, const RetrievePlan& retrieve, bool record)
    : engine_(engine), model_(model), window_(window), memory_plan_(memory), device_(device),
      carry_(model.architecture->carry()),
      in_calls_(nn::arch_facts(model.options.arch).layer_memory) {
  for (const auto& model : memory.models()) {
    ensemble_.push_back(std::make_unique<Member>(*model, device, precision, record));
    ensemble_.back()->session.keeps_prompts_ = memory.online;
  }
  if (retrieve.any()) prefixed_.emplace(engine, retrieve, window);
}

Session::~Session() = default;

bool Session::alone(std::size_t prompt_length) const {
  if (carry_ == nn::Carry::forget && static_cast<std::int64_t>(prompt_length) > window_)
    return true;
  return std::any_of(ensemble_.begin(), ensemble_.end(),
      [&](const auto& other) { return other->session.alone(prompt_length); });
}

std::int64_t Session::forgotten_of(std::int64_t prompt_length) const {
  if (carry_ == nn::Carry::constant || prompt_length <= window_) return 0;
  if (carry_ == nn::Carry::forget || prefixed_) return prompt_length - window_;
  const std::int64_t half = window_ / 2, renewed = window_ - half;
  return (prompt_length - window_ + renewed - 1) / renewed * renewed;
}

// Returns a memory of streams that have read the prompts' tokens.
std::unique_ptr<StreamMemory> Session::memory_after(
    const std::vector<std::vector<std::int64_t>>& prompts) const {
  auto memory = std::make_unique<StreamMemory>(
      memory_plan_, window_, /*streaming=*/true, model_, std::ssize(prompts));
  for (std::size_t row = 0; row < prompts.size(); ++row)
    memory->read(static_cast<std::int64_t>(row), prompts[row]);
  return memory;
}

void Session::start(const std::vector<std::vector<std::int64_t>>& prompts,
    const std::vector<std::vector<std::int64_t>>& sources) {
  check_ids(prompts), check_ids(sources);
  const auto n = static_cast<std::int64_t>(prompts.size());
  engine_.open(n);
  rows_ = n;
  readings_.clear(), kept_.clear();
  texts_.assign(prompts.size(), {});
  for (std::size_t i = 0; i < sources.size(); ++i) texts_[i].source = sources[i];
  ahead_.assign(prompts.size(), {});
  searches_ = searches();
  memory_ = memory_after(prompts);
  for (const auto& other : ensemble_) other->session.start(prompts, sources);
  if (!prefixed_ || memory_->remembers()) {
    const Fed fed = sources.empty() ? feed_prompts(prompts) : feed(prompts);
    if (memory_plan_.online && !prefixed_) learn_weights(*memory_, fed, prompts);
    remember(*memory_, fed, prompts);
    keep_last(fed);
    if (keeps_prompts_) prompt_f_ = outputs_of(fed);
  }
  if (!prefixed_) return;
  for (std::size_t i = 0; i < prompts.size(); ++i) texts_[i].length = std::ssize(prompts[i]);
  prefixed_->start(prompts);
  last_ = prefixed_->best();
}

// Returns how many of `left` tokens to feed next. `feed` receives the tokens to feed again before
// them.
std::int64_t Session::next_piece(Text& text, std::int64_t left, RowInput& feed) const {
  if (left == 0) return 0;
  if (text.length == 0) feed.source = text.source, feed.fresh = true;
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
  std::vector<std::vector<nn::Hidden>> read(tokens.size());
  for (;;) {
    std::vector<RowInput> feeds(tokens.size());
    std::vector<std::int64_t> pieces;
    std::int64_t longest = 0;
    bool full = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      pieces.push_back(next_piece(texts_[i], std::ssize(tokens[i]) - done[i], feeds[i]));
      longest = std::max(longest, pieces[i]);
      full |= texts_[i].seen + pieces[i] > window_;
    }
    if (longest == 0) break;
    if (full && carry_ == nn::Carry::forget) {
      engine_.forget(window_ - longest);
      for (auto& kept : kept_) kept.forgotten |= std::ssize(kept.tokens) > window_ - longest;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto from = tokens[i].begin() + done[i];
      feeds[i].tokens.insert(feeds[i].tokens.end(), from, from + pieces[i]);
      auto& text = texts_[i];
      text.seen = std::min(window_, text.seen + pieces[i]);
      text.length += pieces[i];
      if (carry_ != nn::Carry::reencode) continue;
      text.recent.insert(text.recent.end(), from, from + pieces[i]);
      if (std::ssize(text.recent) > 2 * window_)
        text.recent.erase(text.recent.begin(), text.recent.end() - window_);
    }
    const nn::Hidden hidden = engine_.feed(feeds);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      end += std::ssize(feeds[i].tokens);
      if (pieces[i] == 0) continue;
      read[i].push_back(hidden.slice(end - pieces[i], end));
      done[i] += pieces[i];
    }
  }
  return core::mapped(read, nn::Hidden::concatenate);
}

// Reads what the prompts begin with in one row, which then becomes all rows.
Session::Fed Session::feed_prompts(const std::vector<std::vector<std::int64_t>>& prompts) {
  const auto shared = shared_by(prompts);
  if (shared == 0) return feed(prompts);
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
  for (std::size_t i = 0; whole && i < n; ++i) fed[i] = nn::Hidden::concatenate({first[0], fed[i]});
  return fed;
}

// All of the prompts but their last tokens, whose labels are open. Prompts end at the same step.
void Session::remember(StreamMemory& memory, const Fed& fed,
    const std::vector<std::vector<std::int64_t>>& prompts) const {
  const auto n = std::ssize(prompts);
  std::int64_t steps = 0;
  for (const auto& prompt : prompts) steps = std::max(steps, std::ssize(prompt) - 1);
  if (!memory.remembers() || steps == 0) return;
  const auto options = fed[0].output.options();
  const Tensor f = torch::zeros({steps, n, fed[0].output.size(1)}, options);
  const Tensor g = torch::zeros({steps, n, fed[0].key.size(1)}, options);
  const Tensor labels = torch::zeros({steps, n}, torch::kInt64), position = labels.clone();
  const Tensor run = torch::full({steps, n}, -1, torch::kInt64);
  for (std::int64_t row = 0; row < n; ++row) {
    const auto& prompt = prompts[static_cast<std::size_t>(row)];
    const auto known = std::ssize(prompt) - 1;
    if (known == 0) continue;
    const auto put = [&](const Tensor& to, const Tensor& from) {
      to.select(1, row).narrow(0, steps - known, known).copy_(from);
    };
    const auto hidden = fed[static_cast<std::size_t>(row)].slice(0, known);
    put(f, hidden.output), put(g, hidden.key);
    put(labels, torch::tensor(prompt).narrow(0, 1, known));
    put(position, torch::arange(known));
    put(run, torch::full({known}, row, torch::kInt64));
  }
  memory.append(f.flatten(0, 1), g.flatten(0, 1), nn::upload(labels.flatten(), device_),
      nn::TokenPositions{run, torch::zeros_like(run), position}.flatten());
}

// Returns log p by further models, from f (n, d) of each for a prompt's tokens.
EnsembleRows Session::ensemble_rows(std::vector<Tensor> f) const {
  return [this, f = std::move(f)](std::int64_t begin, std::int64_t end) {
    return core::generated(f.size(), [&](std::size_t i) {
      return ensemble_[i]->engine->head().log_probs(f[i].slice(0, begin, end), nullptr);
    });
  };
}

// Scores the prompts' tokens to learn the weights of sources.
void Session::learn_weights(
    StreamMemory& memory, const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts) {
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    WeightsLearner learner(memory_plan_, window_, model_);
    auto f = core::mapped(ensemble_, [&](auto& other) { return other->session.prompt_f_[row]; });
    learner.learn(engine_.head(), prompts[row], fed[row], ensemble_rows(std::move(f)),
        std::ssize(prompts[row]));
    memory.take_weights(static_cast<std::int64_t>(row), learner.weights());
  }
}

// Learns from at most `most` more tokens of a prompt that has been read. Returns how many.
std::int64_t Session::learn(std::size_t number, std::int64_t most) {
  auto& reading = readings_[number];
  const auto all = [](Reading& of) -> const nn::Hidden& {
    if (of.pieces.size() > 1) of.pieces = {nn::Hidden::concatenate(of.pieces)};
    return of.pieces[0];
  };
  if (reading.learner == nullptr)
    reading.learner = std::make_shared<WeightsLearner>(memory_plan_, window_, model_);
  std::vector<Tensor> f;
  for (const auto& other : ensemble_) f.push_back(all(other->session.readings_[number]).output);
  return reading.learner->learn(
      engine_.head(), reading.prompts[0], all(reading), ensemble_rows(std::move(f)), most);
}

// Keeps the hidden states of the last token before the guesses, and those of the guesses.
void Session::keep_last(const Fed& fed) {
  std::vector<nn::Hidden> last;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows_); ++i) {
    auto& ahead = ahead_[i];
    const auto end = fed[i].output.size(0), at = end - std::ssize(ahead.tokens) - 1;
    last.push_back(fed[i].slice(at, at + 1));
    ahead.hidden = fed[i].slice(at + 1, end);
  }
  last_ = nn::Hidden::concatenate(last);
}

nn::TokenPositions Session::last_place() const {
  const auto positions = core::generated(
      static_cast<std::size_t>(rows_), [&](std::size_t i) { return texts_[i].length - 1; });
  const Tensor run = torch::arange(rows());
  return {run, torch::zeros_like(run), torch::tensor(positions, torch::kInt64)};
}

Tensor Session::log_probs_there() {
  const torch::NoGradGuard no_gradient;
  const auto ensemble = core::mapped(ensemble_, [](auto& of) { return of->session.log_probs(); });
  const Tensor rows = memory_->any() ? memory_->log_probs(engine_.head(), last_.output, last_.key,
                                           last_place(), ensemble)
                      : prefixed_    ? prefixed_->log_probs(engine_.head())
                                     : engine_.head().log_probs(last_.output, nullptr);
  return rows.to(torch::kFloat32).contiguous();
}

Tensor Session::log_normalisers() {
  const torch::NoGradGuard no_gradient;
  Tensor log_z;
  engine_.head().log_probs(last_.output, &log_z);
  return log_z.to(torch::kCPU, torch::kFloat32).contiguous();
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
  const bool full =
      carry_ == nn::Carry::forget && std::any_of(texts_.begin(), texts_.end(),
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
  std::vector<nn::Hidden> last;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& ahead = ahead_[i];
    last.push_back(ahead.hidden.slice(ahead.next, ahead.next + 1));
    ++ahead.next, ++texts_[i].length;
  }
  last_ = nn::Hidden::concatenate(last);
  return true;
}

// Removes guesses that did not come from the model's State.
void Session::roll_back() {
  std::vector<std::int64_t> left;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    auto& text = texts_[i];
    left.push_back(ahead_[i].left());
    text.seen -= left[i];
    if (carry_ == nn::Carry::reencode)
      text.recent.resize(text.recent.size() - static_cast<std::size_t>(left[i]));
    ahead_[i] = {};
  }
  if (std::any_of(left.begin(), left.end(), [](auto n) { return n > 0; })) engine_.roll_back(left);
}

void Session::advance(const std::vector<std::int64_t>& tokens,
    const std::vector<std::vector<std::int64_t>>& guesses) {
  if (memory_->remembers())
    memory_->append(last_.output, last_.key,
        nn::upload(torch::tensor(tokens, torch::kInt64), device_), last_place());
  for (std::int64_t row = 0; row < rows(); ++row)
    memory_->read(row, {&tokens[static_cast<std::size_t>(row)], 1});
  for (const auto& other : ensemble_) other->session.advance(tokens, guesses);
  if (prefixed_) {
    for (auto& text : texts_) ++text.length;
    prefixed_->advance(tokens);
    last_ = prefixed_->best();
    return;
  }
  if (came(tokens)) return;
  roll_back();
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
  fed.resize(texts_.size());  // admitted prompts wait
  if (guessed) engine_.mark();
  const Fed made = feed(fed);
  for (std::size_t i = 0; i < tokens.size(); ++i) texts_[i].length -= ahead_[i].left();
  keep_last(made);
}

void Session::select(const std::vector<std::int64_t>& rows) {
  if (rows == first_numbers(rows_)) return;
  auto all = rows;
  for (std::int64_t row = rows_; row < std::ssize(texts_); ++row) all.push_back(row);
  if (prefixed_ && !rows.empty()) prefixed_->select(rows);
  choose(all);
  rows_ = std::ssize(rows);
  if (rows.empty()) {
    searches_ = searches();
    memory_.reset();
    last_ = {};
  } else {
    const Tensor index = torch::tensor(rows, torch::kInt64);
    memory_->select(index);
    last_ = last_.select(nn::upload(index, last_.output.device()));
  }
  for (const auto& other : ensemble_) other->session.select(rows);
}

// Text i and its engine row become copies of the former text rows[i]. An engine without rows waits
// for open().
void Session::choose(const std::vector<std::int64_t>& rows) {
  if (rows == first_numbers(std::ssize(texts_))) return;
  if (!prefixed_ && !rows.empty()) engine_.select(rows);
  texts_ = chosen(texts_, rows), ahead_ = chosen(ahead_, rows);
}

void Session::clear() {
  readings_.clear(), kept_.clear();
  choose({});
  select({});
  for (const auto& other : ensemble_) other->session.clear();
}

void Session::check_ids(const std::vector<std::vector<std::int64_t>>& texts) const {
  for (const auto& text : texts)
    for (const auto id : text)
      if (id < 0 || id >= model_.vocabulary)
        core::bad_data("token {} is outside the model's vocabulary of {}", id, model_.vocabulary);
}

// Returns whether it matters which tokens a call of the engine reads together, to any model.
bool Session::reads_in_calls() const {
  return in_calls_ || std::any_of(ensemble_.begin(), ensemble_.end(),
                          [](const auto& other) { return other->session.reads_in_calls(); });
}

// Returns how many tokens all prompts begin with; 0 if reading them once does not pay or would
// change what is read.
std::int64_t Session::shared_by(const std::vector<std::vector<std::int64_t>>& prompts) const {
  if (prompts.size() < 2 || reads_in_calls()) return 0;
  const auto shared = shared_beginning(prompts);
  auto window = window_;
  for (const auto& other : ensemble_) window = std::min(window, other->session.window_);
  return shared < kLeastShared || shared >= window ? 0 : shared;
}

std::int64_t Session::admit(std::vector<std::vector<std::int64_t>> prompts) {
  check_ids(prompts);
  const auto first = admitted_, shared = shared_by(prompts);
  admit(std::move(prompts), shared);
  return first;
}

void Session::admit(std::vector<std::vector<std::int64_t>> prompts, std::int64_t shared) {
  for (const auto& other : ensemble_) other->session.admit(prompts, shared);
  const auto before = std::ssize(texts_), first_kept = rows_ + std::ssize(readings_);
  const auto first_new = readings_.size();
  for (auto& prompt : prompts) {
    if (shared == 0 || &prompt == &prompts.front()) readings_.emplace_back();
    auto& reading = readings_.back();
    reading.numbers.push_back(admitted_++);
    reading.until = shared > 0 ? shared : std::ssize(prompt);
    reading.prompts.push_back(std::move(prompt));
  }
  if (before == 0) engine_.open(rows_ + std::ssize(readings_));
  // New rows continue kept ones, or begin as any copies, which their first call resets.
  auto rows = first_numbers(first_kept);
  std::vector<std::int64_t> reused(rows.size(), -1);  // tokens of new rows
  for (auto i = first_new; i < readings_.size(); ++i) {
    auto& reading = readings_[i];
    const auto [number, n] = continued(reading);
    reused.push_back(n);
    rows.push_back(n == 0 ? 0 : first_kept + static_cast<std::int64_t>(number));
    if (n == 0) continue;
    auto& kept = kept_[number];
    kept.used = ++used_;
    reading.done = reading.reused = n;
    const auto size = std::ssize(kept.tokens);
    if (n == size || kept.hidden.output.size(0) == size) reading.pieces = {kept.hidden.slice(0, n)};
  }
  for (std::int64_t i = 0; i < std::ssize(kept_); ++i) rows.push_back(first_kept + i);
  reused.resize(rows.size(), -1);
  if (before == 0) {
    texts_.resize(rows.size()), ahead_.resize(rows.size());
    return;
  }
  choose(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& text = texts_[i];
    if (reused[i] == 0) text = {}, ahead_[i] = {};
    if (reused[i] <= 0) continue;
    // The next call rolls back the other tokens, as guesses that did not come.
    ahead_[i].tokens.resize(static_cast<std::size_t>(text.length - reused[i]));
    text.length = reused[i];
  }
}

void Session::keep(std::int64_t most) {
  const bool can = engine_.idle_rows_are_free() && ensemble_.empty() && !prefixed_ && !in_calls_;
  most_kept_ = can ? most : 0;
}

std::int64_t Session::reused(std::int64_t number) const {
  for (const auto& reading : readings_)
    if (std::ranges::count(reading.numbers, number) > 0) return reading.reused;
  return 0;
}

// Finds the kept prompt that has most of the first tokens of a reading. Returns its number and how
// many tokens need not be read again; 0: none. Of a part of a kept prompt, the last token is read.
std::pair<std::size_t, std::int64_t> Session::continued(const Reading& reading) const {
  std::pair<std::size_t, std::int64_t> best = {0, 0};
  const auto& prompt = reading.prompts[0];
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const auto& tokens = kept_[i].tokens;
    const auto most = std::min(std::ssize(tokens), reading.until);
    auto n =
        std::mismatch(tokens.begin(), tokens.begin() + most, prompt.begin()).first - tokens.begin();
    if (n < std::ssize(tokens)) n = std::min(n, reading.until - 1);
    if (!kept_[i].forgotten && n >= kLeastKept && n > best.second) best = {i, n};
  }
  return best;
}

// Keeps prompts that have been read, whose engine rows are `read_rows`, instead of those that they
// continue and of those that were not used for the longest time. The engine rows of kept_ begin at
// `first_kept`. Returns those of the new kept_.
std::vector<std::int64_t> Session::keep_read(const std::vector<Reading>& read,
    const std::vector<std::int64_t>& read_rows, std::int64_t first_kept) {
  const bool whole = memory_plan_.remembers() || memory_plan_.online;
  auto rows = first_numbers(first_kept + std::ssize(kept_));
  rows.erase(rows.begin(), rows.begin() + first_kept);
  const auto drop = [&](std::size_t i) {
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::size_t r = 0; r < read.size(); ++r) {
    const auto& tokens = read[r].prompts[0];
    if (most_kept_ == 0 || std::ssize(tokens) < kLeastKept || std::ssize(tokens) > window_)
      continue;
    for (std::size_t i = kept_.size(); i-- > 0;) {
      const auto& old = kept_[i].tokens;
      if (kept_[i].forgotten ||
          (old.size() <= tokens.size() && std::equal(old.begin(), old.end(), tokens.begin())))
        drop(i);
    }
    if (std::ssize(kept_) == most_kept_)
      drop(static_cast<std::size_t>(
          std::ranges::min_element(kept_, {}, &Kept::used) - kept_.begin()));
    auto hidden = nn::Hidden::concatenate(read[r].pieces);
    const auto n = hidden.output.size(0);
    if (!whole) hidden = hidden.slice(n - 1, n);
    kept_.push_back({tokens, std::move(hidden), ++used_});
    rows.push_back(read_rows[r]);
  }
  return rows;
}

// Returns how many tokens each reading reads next. Where it matters what a call reads, these are
// the calls of start().
std::vector<std::int64_t> Session::divided(std::int64_t most) const {
  std::vector<std::int64_t> parts(readings_.size(), 0);
  if (readings_.empty()) return parts;
  const auto& oldest = readings_.front();
  if (alone(oldest.prompts[0].size())) {
    parts[0] = oldest.left();
  } else if (reads_in_calls()) {
    parts[0] = std::min(oldest.left(), kPiece);
  } else {
    auto order = first_numbers(std::ssize(readings_));
    const auto left = [&](std::int64_t i) { return readings_[static_cast<std::size_t>(i)].left(); };
    std::ranges::stable_sort(order, {}, left);
    parts[0] = std::min(oldest.left(), std::max<std::int64_t>(1, most / 4));
    most -= parts[0];
    for (const auto i : order) {
      auto& part = parts[static_cast<std::size_t>(i)];
      const auto more = std::min(left(i) - part, std::max<std::int64_t>(0, most));
      part += more, most -= more;
    }
  }
  return parts;
}

std::vector<std::int64_t> Session::read(std::int64_t most, std::int64_t* tokens) {
  if (readings_.empty()) return {};
  const auto parts = divided(most);
  read_parts(parts);
  auto done = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  auto left = std::max(kLeastLearned, most - done);
  std::vector<bool> complete;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const bool read = readings_[i].left() == 0 && readings_[i].whole();
    const auto learned = read && memory_plan_.online && left > 0 ? learn(i, left) : 0;
    left -= learned, done += learned;
    complete.push_back(read && (!memory_plan_.online || readings_[i].learned()));
  }
  if (tokens != nullptr) *tokens = done;
  return finish(complete);
}

void Session::read_parts(const std::vector<std::int64_t>& parts) {
  for (const auto& other : ensemble_) other->session.read_parts(parts);
  roll_back();
  std::vector<std::vector<std::int64_t>> tokens(texts_.size());
  const auto first = static_cast<std::size_t>(rows_);
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const auto from = readings_[i].prompts[0].begin() + readings_[i].done;
    tokens[first + i].assign(from, from + parts[i]);
  }
  const Fed fed = feed(tokens);
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (parts[i] == 0) continue;
    readings_[i].pieces.push_back(fed[first + i]);
    readings_[i].done += parts[i];
  }
}

// Makes prompts that are complete the last rows. Returns their numbers.
std::vector<std::int64_t> Session::finish(const std::vector<bool>& complete) {
  for (const auto& other : ensemble_) other->session.finish(complete);
  const auto read = take_read(complete);
  auto numbers = core::mapped(read, [](const auto& one) { return one.numbers[0]; });
  if (!read.empty()) add_rows(read);
  return numbers;
}

// Removes and returns the prompts that are complete; their engine rows follow those of the rows. A
// beginning that has been read becomes the beginnings of its prompts.
std::vector<Session::Reading> Session::take_read(const std::vector<bool>& complete) {
  std::vector<Reading> read, rest;
  std::vector<std::int64_t> read_rows, rest_rows;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    auto& reading = readings_[i];
    const auto row = rows_ + static_cast<std::int64_t>(i);
    if (reading.left() > 0 || (reading.whole() && !complete[i])) {
      rest.push_back(std::move(reading));
      rest_rows.push_back(row);
    } else if (reading.whole()) {
      read.push_back(std::move(reading));
      read_rows.push_back(row);
    } else {
      for (std::size_t p = 0; p < reading.prompts.size(); ++p) {
        rest.push_back({{reading.numbers[p]}, {reading.prompts[p]}, std::ssize(reading.prompts[p]),
            reading.done, reading.pieces, reading.reused});
        rest_rows.push_back(row);
      }
    }
  }
  auto rows = first_numbers(rows_);
  rows.insert(rows.end(), read_rows.begin(), read_rows.end());
  rows.insert(rows.end(), rest_rows.begin(), rest_rows.end());
  const auto first_kept = rows_ + std::ssize(readings_);
  readings_ = std::move(rest);
  const auto kept_rows = keep_read(read, read_rows, first_kept);
  rows.insert(rows.end(), kept_rows.begin(), kept_rows.end());
  choose(rows);
  return read;
}

// Makes prompts that have been read the last rows.
void Session::add_rows(const std::vector<Reading>& read) {
  Fed fed;
  std::vector<std::vector<std::int64_t>> prompts;
  for (const auto& reading : read) {
    fed.push_back(nn::Hidden::concatenate(reading.pieces));
    prompts.push_back(reading.prompts[0]);
  }
  auto memory = memory_after(prompts);
  for (std::size_t i = 0; i < read.size(); ++i)
    if (read[i].learner != nullptr)
      memory->take_weights(static_cast<std::int64_t>(i), read[i].learner->weights());
  remember(*memory, fed, prompts);
  std::vector<nn::Hidden> last;
  if (rows_ > 0) last.push_back(last_);
  for (const auto& one : fed) last.push_back(one.slice(one.output.size(0) - 1, one.output.size(0)));
  last_ = nn::Hidden::concatenate(last);
  if (rows_ > 0) {
    memory_->join(*memory);
  } else {
    memory_ = std::move(memory);
  }
  if (keeps_prompts_) prompt_f_ = outputs_of(fed);
  rows_ += std::ssize(read);
}

void Session::discard(std::int64_t number) {
  for (const auto& other : ensemble_) other->session.discard(number);
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    auto& numbers = readings_[i].numbers;
    auto& prompts = readings_[i].prompts;
    const auto at = std::find(numbers.begin(), numbers.end(), number) - numbers.begin();
    if (at == std::ssize(numbers)) continue;
    numbers.erase(numbers.begin() + at);
    prompts.erase(prompts.begin() + at);
    if (!numbers.empty()) return;
    readings_.erase(readings_.begin() + static_cast<std::ptrdiff_t>(i));
    auto rows = first_numbers(std::ssize(texts_));
    rows.erase(rows.begin() + rows_ + static_cast<std::ptrdiff_t>(i));
    return choose(rows);
  }
}

}  // namespace infer
