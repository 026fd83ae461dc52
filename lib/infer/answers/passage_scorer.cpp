#include "infer/answers/passage_scorer.h"

namespace infer {
namespace {

nn::TokenPositions place_of(std::int64_t position, std::int64_t n, std::int64_t segment) {
  return {torch::zeros({n}, torch::kInt64), torch::full({n}, segment, torch::kInt64),
      torch::arange(position, position + n)};
}

Tensor behind(const Tensor& a, const Tensor& b) { return b.defined() ? torch::cat({a, b}) : a; }

}  // namespace

struct PassageScorer::Member {
  Member(const EnsembleModel& own, const WindowPlan& theirs, std::int64_t vocabulary)
      : model(*own.loaded.model), engine(model, model.head->weights().at(0).device()) {
    WindowPlan windows = plan_windows(own.windows, model, own.loaded.facts);
    windows.window_token = theirs.window_token;
    scorer.emplace(model, engine, windows, MemoryPlan{}, vocabulary, TokenWants{.hidden = true});
  }
  nn::Model& model;
  ModuleEngine engine;
  std::optional<PassageScorer> scorer;
};

PassageScorer::PassageScorer(nn::Model& model, Engine& engine, const WindowPlan& windows,
    const MemoryPlan& memory, std::int64_t vocabulary, TokenWants wants)
    : model_(model), plan_(windows), reach_(memory.reach(windows.carried ? windows.window : 0)),
      encoder_(engine, model, windows),
      scores_(model, engine.head(), windows, memory, vocabulary, wants),
      whole_windows_(memory.remembers()) {
  plan_.beginning = -1;
  plan_.by_document = false;
  for (const auto& model : memory.models())
    ensemble_.push_back(std::make_unique<Member>(*model, plan_, vocabulary));
  if (plan_.retrieve.any()) retriever_.emplace(plan_.retrieve);
}

PassageScorer::~PassageScorer() = default;

std::int64_t PassageScorer::longest() const {
  const bool any = plan_.carried || retriever_.has_value();
  std::int64_t longest = any ? std::numeric_limits<std::int64_t>::max() : plan_.window;
  for (const auto& other : ensemble_) longest = std::min(longest, other->scorer->longest());
  return longest;
}

void PassageScorer::score_ensemble(
    std::span<const Passage> passages, std::vector<std::vector<TokenScores>>& scores) {
  ensemble_f_.clear();
  for (const auto& other : ensemble_) {
    const auto theirs = other->scorer->score(passages, pace_);
    for (std::size_t i = 0; i < scores.size(); ++i)
      for (std::size_t j = 0; j < scores[i].size(); ++j)
        ensemble_f_[&scores[i][j]].push_back(torch::cat(theirs[i][j].hidden));
  }
}

// Returns the inputs of a window, which may begin with a special token.
PassageScorer::Tokens PassageScorer::inputs(
    const Tokens& tokens, std::int64_t begin, std::int64_t end) const {
  Tokens fed(tokens.begin() + begin, tokens.begin() + end);
  if (begin > 0 && plan_.window_token >= 0) fed[0] = plan_.window_token;
  return fed;
}

void PassageScorer::score_text(const Passage& passage, TokenScores& to) {
  Tokens tokens = passage.context;
  tokens.insert(tokens.end(), passage.continuations[0].begin(), passage.continuations[0].end());
  const shard::Documents none;
  Windows windows(plan_, none, tokens.size());
  std::int64_t read = 0;
  std::optional<DynamicWeights> learner;
  while (const auto span = windows.next()) {
    Work work;
    const auto first = static_cast<std::int64_t>(span->target) - 1, end = first + span->length;
    work.targets.assign(tokens.begin() + first + 1, tokens.begin() + end + 1);
    work.position = first;
    work.number = span->number;
    work.first_scored = span->first_scored;
    work.fresh = span->fresh;
    work.before.assign(tokens.begin() + read, tokens.begin() + first + 1 + span->first_scored);
    read = end + 1;
    work.to = {&to};
    work.tree.stem = plan_.carried ? Tokens(tokens.begin() + first, tokens.begin() + end)
                                   : inputs(tokens, first, end);
    if (!plan_.carried && !plan_.dynamic.on) {
      add(std::move(work));
      continue;
    }
    if (!plan_.carried) {
      add(std::move(work));
      flush();
      if (end + 1 == std::ssize(tokens)) continue;
      if (span->fresh) learner.emplace(model_, plan_.dynamic);
      learn_window(*learner, model_, tokens, *span, plan_.window_token);
      continue;
    }
    const nn::Hidden hidden = encoder_.go_on(work.tree.stem, span->fresh);
    scores_.score(windows_of(work, {hidden, {}}));
  }
}

void PassageScorer::score_with_prefixes(
    const Tokens& context, const Tokens& continuation, TokenScores& to) {
  const RetrievePlan& plan = plan_.retrieve;
  Tokens tokens = context;
  tokens.insert(tokens.end(), continuation.begin(), continuation.end());
  const std::int64_t start = std::ssize(context), size = std::ssize(tokens);
  std::int64_t number = 0;
  for (std::int64_t from = start; from < size; from += plan.every, ++number) {
    const std::int64_t end = std::min(from + plan.every, size);
    const RetrievalQuery query = {
        {tokens.begin() + std::max<std::int64_t>(0, from - plan.query), tokens.begin() + from}};
    const Prefixes prefixes = retriever_->find({&query, 1})[0];
    Work work;
    work.prefix = infer::longest(prefixes);
    work.position = std::max<std::int64_t>(0, end - 1 - (plan_.window - work.prefix));
    if (!prefixes.empty()) work.tree.stem = prefixes[0].tokens;
    work.tree.stem.insert(
        work.tree.stem.end(), tokens.begin() + work.position, tokens.begin() + end - 1);
    work.targets.assign(tokens.begin() + work.position + 1, tokens.begin() + end);
    work.first_scored = from - 1 - work.position;
    work.fresh = from == start;
    work.continues = true;
    if (work.fresh) {
      if (start > 1) cut_.add(start, work.position);
      work.past = past_of(context, work.position);
      number = (work.position + plan_.window - 1) / plan_.window;
      work.first_new = 0;
      work.before = context;
    }
    work.number = number;
    work.to = {&to};
    to.retrieved.push_back(
        {{"token", from - start}, {"passages", to_json(prefixes, retriever_->index())}});
    add(std::move(work));
  }
}

// Encodes the tokens [from, start) of a context in successive windows; `from` begins one.
nn::Hidden PassageScorer::windows_before(
    const Tokens& context, std::int64_t from, std::int64_t start) {
  std::vector<nn::Hidden> hidden;
  for (std::int64_t begin = from; begin < start; begin += plan_.window) {
    const TokenTree tree{inputs(context, begin, std::min(begin + plan_.window, start)), {}};
    hidden.push_back(encoder_.encode({&tree, 1})[0].stem);
  }
  return nn::Hidden::concatenate(hidden);
}

// Returns f of all tokens of a context.
Tensor PassageScorer::output_of(const Tokens& context) {
  const TokenTree whole{context, {}};
  return plan_.carried ? encoder_.encode({&whole, 1})[0].stem.output
                       : windows_before(context, 0, std::ssize(context)).output;
}

// Learns the weights with which the continuations of a context begin.
void PassageScorer::learn_from(Work& work, const nn::Hidden& stem) const {
  if (!scores_.learns() || work.continuations.empty() || work.before.size() < 2) return;
  const auto whole =
      work.earlier.output.defined() ? nn::Hidden::concatenate({work.earlier, stem}) : stem;
  const auto theirs = contexts_f_.find(work.before);
  work.learned = scores_.learn(
      work.before, whole, theirs == contexts_f_.end() ? std::vector<Tensor>() : theirs->second);
}

// Returns what memories hold of the context before token `start`.
Window PassageScorer::past_of(const Tokens& context, std::int64_t start) {
  Window past;
  if (!scores_.remembers() || start == 0 || reach_ == 0) return past;
  const std::int64_t window = plan_.window;
  const std::int64_t from = std::max<std::int64_t>(0, start - reach_) / window * window;
  const auto whole = windows_before(context, from, start);
  past.output = whole.output, past.key = whole.key;
  const Tokens labels(context.begin() + from + 1, context.begin() + start + 1);
  past.targets = torch::tensor(labels).to(past.output.device());
  past.place = place_of(from, start - from, 0);
  past.place.segment = past.place.position.div(window, "floor");
  return past;
}

void PassageScorer::gather(
    const Passage& passage, std::vector<TokenScores>& to, std::vector<Work>& works, Stems& stems) {
  const auto longest =
      core::max_of(passage.continuations, [](const auto& one) { return std::ssize(one); });
  const auto size = std::ssize(passage.context);
  const std::int64_t start =
      plan_.carried ? 0 : std::max<std::int64_t>(0, size + longest - 1 - plan_.window);
  cut_.add(size, start);
  const auto [at, made] = stems.try_emplace({start, passage.context}, works.size());
  if (made) works.emplace_back().position = start;
  Work& work = works[at->second];
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Tokens& continuation = passage.continuations[i];
    work.tree.branches.emplace_back(continuation.begin(), continuation.end() - 1);
    work.continuations.push_back(&continuation);
    work.to.push_back(&to[i]);
  }
}

void PassageScorer::go_at(Pace* pace) {
  pace_ = pace;
  encoder_.go_at(pace), scores_.go_at(pace);
  for (const auto& other : ensemble_) other->scorer->go_at(pace);
}

std::vector<std::vector<TokenScores>> PassageScorer::score(
    std::span<const Passage> passages, Pace* pace) {
  const torch::NoGradGuard no_gradient;
  go_at(pace);
  trees_.clear(), works_.clear();  // of a call that threw
  std::vector<std::vector<TokenScores>> scores(passages.size());
  std::vector<Work> works;
  Stems stems;
  for (std::size_t i = 0; i < passages.size(); ++i)
    scores[i].resize(passages[i].continuations.size());
  contexts_f_.clear();
  for (const auto& passage : passages)
    if (scores_.learns() && !retriever_ && !passage.text && !contexts_f_.contains(passage.context))
      for (auto& f = contexts_f_[passage.context]; const auto& other : ensemble_)
        f.push_back(other->scorer->output_of(passage.context));
  score_ensemble(passages, scores);
  for (std::size_t i = 0; i < passages.size(); ++i) {
    if (retriever_) {
      for (std::size_t k = 0; k < scores[i].size(); ++k)
        score_with_prefixes(passages[i].context, passages[i].continuations[k], scores[i][k]);
    } else if (passages[i].text) {
      score_text(passages[i], scores[i][0]);
    } else {
      gather(passages[i], scores[i], works, stems);
    }
  }
  // Batches stems of similar length.
  std::vector<const Stems::value_type*> order;
  for (const auto& stem : stems) order.push_back(&stem);
  std::ranges::stable_sort(order, {},
      [](const auto* stem) { return std::ssize(stem->first.second) - stem->first.first; });
  for (const auto* stem : order) {
    Work& work = works[stem->second];
    const auto& [start, context] = stem->first;
    work.past = past_of(context, start);
    work.number = (start + plan_.window - 1) / plan_.window;
    work.tree.stem = inputs(context, start, std::ssize(context));
    work.before = context;
    work.continues = true;
    if (scores_.learns() && start > 0) work.earlier = windows_before(context, 0, start);
    add(std::move(work));
  }
  flush(/*keep=*/order.size() == 1);
  return scores;
}

void PassageScorer::add(Work work) {
  if (!encoder_.fits(trees_, work.tree)) flush();
  trees_.push_back(std::move(work.tree));
  works_.push_back(std::move(work));
}

void PassageScorer::flush(bool keep) {
  const auto encoded = encoder_.encode(trees_, keep && trees_.size() == 1);
  std::vector<WindowToScore> windows;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    works_[i].tree = std::move(trees_[i]);
    learn_from(works_[i], encoded[i].stem);
    for (auto& window : windows_of(works_[i], encoded[i])) windows.push_back(std::move(window));
  }
  trees_.clear();
  works_.clear();
  scores_.score(windows);
}

std::vector<WindowToScore> PassageScorer::windows_of(
    const Work& work, const EncodedTree& encoded) const {
  std::vector<WindowToScore> windows;
  const Tensor &stem_f = encoded.stem.output, &stem_g = encoded.stem.key;
  const auto stem = stem_f.size(0);
  const auto add = [&](Window window, bool fresh, const Window& past, TokenScores* to) {
    window.targets = window.targets.to(stem_f.device());
    window.before = work.before;
    windows.push_back({std::move(window), fresh, past, to, work.learned, work.continues,
        ensemble_.empty() ? nullptr : &ensemble_f_.at(to)});
  };
  if (work.continuations.empty()) {
    add({stem_f.slice(0, work.prefix), stem_g.slice(0, work.prefix), torch::tensor(work.targets),
            place_of(work.position, stem - work.prefix, work.number), work.first_scored,
            work.first_new},
        work.fresh, work.past, work.to[0]);
    return windows;
  }
  Window past = work.past;
  // Number of the stem's tokens in the window of a continuation. With carried State only the last
  // token is in the window; memories hold the tokens before it.
  const std::int64_t shown = whole_windows_ && !plan_.carried ? stem : 1;
  const auto& tokens = work.tree.stem;
  if (whole_windows_ && plan_.carried && stem > 1)
    past = {stem_f.slice(0, 0, stem - 1), stem_g.slice(0, 0, stem - 1),
        torch::tensor(Tokens(tokens.begin() + 1, tokens.end())).to(stem_f.device()),
        place_of(0, stem - 1, 0), 0};
  for (std::size_t i = 0; i < work.continuations.size(); ++i) {
    const auto& [f, g] = encoded.branches[i];
    Tokens targets(tokens.end() - shown + 1, tokens.end());
    targets.insert(targets.end(), work.continuations[i]->begin(), work.continuations[i]->end());
    add({behind(stem_f.slice(0, stem - shown), f), behind(stem_g.slice(0, stem - shown), g),
            torch::tensor(targets),
            place_of(work.position + stem - shown, std::ssize(targets), work.number), shown - 1},
        true, past, work.to[i]);
  }
  return windows;
}

}  // namespace infer
