// Beam search for the best texts of each prompt, and citation of the stored contexts behind them.
// Continues prompts that arrive while others are continued: rows are refilled between two steps.

#include "infer/generate/generator.h"

namespace infer {
namespace {

constexpr std::int64_t kReadOnDevice = 1024;  // prompt tokens between two steps

}  // namespace

// The hypotheses of one prompt.
struct Generator::Search {
  struct Text {
    StopText text;
    text::StreamDecoder decoder;
  };
  std::uint64_t prompt;
  Beam beam;
  Text start;               // the state after the prompt
  std::vector<Text> texts;  // of the live hypotheses
};

void Generator::search(const std::vector<Start>& starts, const GeneratorCallbacks& watch) {
  std::vector<Search> searches;
  for (const auto& start : starts) {
    const Search::Text text{StopText(start.stop), decoder_after(start)};
    searches.push_back(
        {start.number, Beam(options_.beam, options_.length_penalty, start.most), text, {text}});
  }
  open_rows(starts);
  std::vector<Sample> found;  // kept until they are cited
  const auto tell = [&](const Search& search) {
    std::int64_t rank = 0;
    std::set<std::string> texts;
    for (auto& hypothesis : search.beam.best(2 * options_.beam)) {
      if (rank == options_.samples) break;
      Sample sample{search.prompt, rank, {}, std::move(hypothesis.tokens), hypothesis.log_prob,
          hypothesis.ending.finish, {}};
      auto text = search.start;
      for (const auto token : sample.tokens) ends(text.text, text.decoder, token);
      sample.text = text.text.text();
      if (!texts.insert(sample.text).second) continue;  // of other tokens
      ++rank;
      if (watch.piece) watch.piece(sample.prompt, sample.sample, sample.text);
      if (citer_) {
        found.push_back(std::move(sample));
      } else if (watch.finished) {
        watch.finished(sample);
      }
    }
  };
  while (!searches.empty()) {
    const torch::Tensor log_p = session_->log_probs();
    count(static_cast<std::size_t>(log_p.size(0)), watch);
    std::vector<std::int64_t> parents, tokens;
    std::vector<Search> rest;
    std::int64_t first = 0;  // row of the search's first hypothesis
    for (auto& search : searches) {
      std::vector<std::span<const float>> rows;
      const auto live = static_cast<std::int64_t>(search.beam.live().size());
      for (std::int64_t i = 0; i < live; ++i) rows.push_back(row_of(log_p, first + i));
      best_token(rows[0]);  // throws if the model gives NaN
      const auto continued = search.beam.advance(
          rows, [&](std::size_t parent, std::int64_t token) -> std::optional<Ending> {
            auto text = search.texts[parent];
            const auto finish = ends(text.text, text.decoder, token);
            if (!finish) return std::nullopt;
            return Ending(*finish, text.text.text());
          });
      if (search.beam.done()) {
        tell(search);
      } else {
        std::vector<Search::Text> texts;
        for (std::size_t i = 0; i < continued.size(); ++i) {
          const auto token = search.beam.live()[i].tokens.back();
          texts.push_back(search.texts[static_cast<std::size_t>(continued[i])]);
          ends(texts.back().text, texts.back().decoder, token);
          parents.push_back(first + continued[i]);
          tokens.push_back(token);
        }
        search.texts = std::move(texts);
        rest.push_back(std::move(search));
      }
      first += live;
    }
    searches = std::move(rest);
    if (searches.empty()) break;
    session_->select(parents);
    session_->advance(tokens);
  }
  if (citer_) cite(starts, found);
  for (const auto& sample : found)
    if (watch.finished) watch.finished(sample);
}

// Feeds the samples again, token by token, and looks up what the stores contributed to each token.
void Generator::cite(const std::vector<Start>& starts, std::vector<Sample>& samples) {
  std::vector<std::int64_t> rows;  // first of the starts, then of the unfinished samples
  std::vector<Sample*> live;
  for (auto& sample : samples) {
    const auto start = std::ranges::find(starts, sample.prompt, &Start::number);
    rows.push_back(start - starts.begin());
    live.push_back(&sample);
  }
  open_rows(starts);
  session_->select(rows);
  while (!live.empty()) {
    const torch::Tensor log_p = session_->log_probs();
    std::vector<std::int64_t> tokens, going_on;
    std::vector<Sample*> rest;
    for (std::size_t i = 0; i < live.size(); ++i) {
      auto& sample = *live[i];
      const auto row = static_cast<std::int64_t>(i);
      const auto token = sample.tokens[sample.cited.size()];
      const auto log_prob = row_of(log_p, row)[static_cast<std::size_t>(token)];
      sample.cited.push_back(
          citer_->cite(session_->memory(), {row, token, static_cast<double>(log_prob)}));
      if (sample.cited.size() == sample.tokens.size()) continue;
      tokens.push_back(token);
      going_on.push_back(row);
      rest.push_back(live[i]);
    }
    live = std::move(rest);
    if (live.empty()) break;
    session_->select(going_on);
    session_->advance(tokens);
  }
}

// Samples [first, last) of a prompt, which is read once for all of them that get rows together.
struct Generator::Waiting {
  std::shared_ptr<const Start> start;
  std::int64_t first, last, reused = 0;
  std::int64_t rows() const { return last - first; }
};

// The texts of a run() with arrivals.
struct Generator::Refilled {
  std::deque<Waiting> waiting;              // without rows
  std::map<std::int64_t, Waiting> reading;  // by the number of the prompt in the session
  std::vector<Growing> texts;               // the session's rows
  Draw draw;

  std::int64_t rows() const {
    auto rows = std::ssize(texts);
    for (const auto& [number, one] : reading) rows += one.rows();
    return rows;
  }
};

void Generator::run(const Arrivals& arrivals, const GeneratorCallbacks& watch) {
  if (options_.searches() || sources_ || retrieve_.any())
    core::bug("arrivals: cannot be combined with a beam, sources or passages");
  refilled_.reset();
  while (step(arrivals, watch, /*shared=*/false)) {}
}

bool Generator::step(const Arrivals& arrivals, const GeneratorCallbacks& watch, bool shared) {
  if (refilled_ == nullptr) {
    session_->clear();
    refilled_.reset(new Refilled{{}, {}, {}, Draw(options_.draw)});
  }
  auto refilled = std::move(refilled_);  // lost if it throws
  drop_unwanted(*refilled, arrivals);
  admit(*refilled, arrivals, watch);
  const bool any = refilled->rows() > 0;
  if (any) read(*refilled, shared);
  if (!refilled->texts.empty()) step(refilled->texts, refilled->draw, watch);
  refilled_ = std::move(refilled);
  return any;
}

void Generator::drop_unwanted(Refilled& refilled, const Arrivals& arrivals) {
  const auto wanted = [&](std::uint64_t prompt) { return arrivals.wanted(prompt); };
  std::erase_if(refilled.waiting, [&](const auto& one) { return !wanted(one.start->number); });
  std::erase_if(refilled.reading, [&](const auto& one) {
    if (wanted(one.second.start->number)) return false;
    session_->discard(one.first);
    return true;
  });
  std::vector<std::int64_t> rows;
  std::vector<Growing> texts;
  for (std::size_t i = 0; i < refilled.texts.size(); ++i) {
    if (!wanted(refilled.texts[i].sample.prompt)) continue;
    rows.push_back(static_cast<std::int64_t>(i));
    texts.push_back(std::move(refilled.texts[i]));
  }
  session_->select(rows);
  refilled.texts = std::move(texts);
}

// Admits the next prompts, in their order, as long as rows are free.
void Generator::admit(
    Refilled& refilled, const Arrivals& arrivals, const GeneratorCallbacks& watch) {
  auto& waiting = refilled.waiting;
  std::vector<Waiting> together;
  auto free = options_.batch - refilled.rows();
  const auto alone = [&](const Waiting& one) { return session_->alone(one.start->tokens.size()); };
  for (const auto& [number, one] : refilled.reading)
    if (alone(one)) return;
  while (free > 0) {
    if (waiting.empty())
      for (auto& arrival : arrivals.next(free)) {
        for (auto& made : starts_of({arrival.prompt}, watch)) {
          const auto temperature = made.draw.temperature;
          made.draw = arrival.draw, made.draw.temperature = temperature;
          made.logits = arrival.logits, made.likely = arrival.likely;
          const auto start = std::make_shared<const Start>(std::move(made));
          waiting.push_back({start, 0, arrival.samples});
        }
      }
    if (waiting.empty()) break;
    auto& next = waiting.front();
    const bool by_itself = alone(next);
    if (by_itself && (refilled.rows() > 0 || !together.empty())) break;
    // Samples without a row read the prompt again later, so that no request waits for many rows.
    const auto rows = std::min(free, next.rows());
    together.push_back({next.start, next.first, next.first + rows});
    free -= rows, next.first += rows;
    if (next.rows() == 0) waiting.pop_front();
    if (by_itself) break;
  }
  if (together.empty()) return;
  auto prompts = core::mapped(together, [](const auto& one) { return one.start->tokens; });
  auto number = session_->admit(std::move(prompts));
  for (auto& one : together) {
    one.reused = session_->reused(number);
    reused_ += static_cast<std::uint64_t>(one.reused);
    refilled.reading.emplace(number++, std::move(one));
  }
}

// Reads a piece of the admitted prompts. Those that have been read become texts.
void Generator::read(Refilled& refilled, bool shared) {
  if (refilled.reading.empty()) return;
  const auto before = session_->rows();
  const auto most = device_.is_cpu() ? read_size_.tokens() : kReadOnDevice;
  const auto start = std::chrono::steady_clock::now();
  std::int64_t tokens = 0;
  const auto read = session_->read(most, &tokens);
  read_size_.took(
      tokens, std::chrono::steady_clock::now() - start, shared || !refilled.texts.empty());
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < before; ++row) rows.push_back(row);
  for (std::size_t i = 0; i < read.size(); ++i) {
    const auto found = refilled.reading.find(read[i]);
    const auto& one = found->second;
    const auto decoder = decoder_after(*one.start);
    for (auto sample = one.first; sample < one.last; ++sample) {
      refilled.texts.push_back(growing(*one.start, sample, decoder));
      refilled.texts.back().start = one.start;
      refilled.texts.back().sample.reused = one.reused;
      rows.push_back(before + static_cast<std::int64_t>(i));
    }
    refilled.reading.erase(found);
  }
  session_->select(rows);
}

}  // namespace infer
