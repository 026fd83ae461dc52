#include "infer/serve/completer.h"

#include "infer/serve/open_job.h"
#include "model/tokenizer_file.h"

namespace infer {
namespace {

using OpenPtr = std::shared_ptr<OpenJob>;

constexpr int kWrong = 400, kFault = 500;
constexpr std::size_t kMostLanes = 4;
constexpr const char* kNoMemory = "-";    // which no request asks for
constexpr std::int64_t kTogether = 4096;  // tokens of texts that are scored together
constexpr std::chrono::milliseconds kLook{100};

// Ends the scoring of jobs, one of which is cancelled.
struct ClientLeft {};

AnswererOptions answerer_options(const CompleterOptions& options) {
  AnswererOptions made;
  made.model = options.model;
  made.tokenizer = options.tokenizer;
  made.windows.window = options.generator.window;
  made.reach = options.generator.reach;
  made.memory = options.memory;
  made.compute.device = options.compute.device;
  if (packs(options.generator.weights)) made.compute.precision = options.generator.weights;
  made.likely = options.likely;
  return made;
}

}  // namespace

void CompleterOptions::fields(core::FieldList& f) {
  auto& folder = f("model", model, "folder of the model");
  folder.short_name = 'm', folder.required = true;
  model::tokenizer_field(f, tokenizer);
  f("system", system, "system message of conversations without one");
  f("batch", generator.batch, "texts decoded in one batch").between(1, 65536);
  f("keep-prompts", kept,
      "number of prompt caches kept for requests that begin with the same tokens, such as the next "
      "turn of a chat")
      .none_or(1, 4096);
  f("window", generator.window, "context length in tokens; auto: the trained length")
      .auto_or(1, 1e9);
  f("dtype", generator.weights, "data type of the weights during decoding",
      {"auto", "float32", "bfloat16", "int8", "file"});
  generator.key_field(f);
  f("cite", generator.cite, "return the stored contexts that predicted each token");
  f("cite-k", generator.cite_k, "cited contexts per token").between(1, 65536).needs("cite");
  generator.reach.fields(f);
  retrieve.turn_fields(f);
  turns.fields(f);
  memory.fields(f);
  compute.fields(f);
}

// The texts that are generated with one memory.
struct Completer::Lane {
  std::string memory;  // as requests ask for it
  Generator generator;
  // A text's job and the index of its prompt, by the generator's number of the prompt.
  std::map<std::uint64_t, std::pair<OpenPtr, std::size_t>> texts = {};
  std::uint64_t tokens = 0, running = 0;  // generated in all, and in the last step

  void drop(const OpenPtr& job) {
    std::erase_if(texts, [&](const auto& one) { return one.second.first == job; });
  }
};

// A call of run().
struct Completer::Run {
  Run(Completer& of, serve::JobQueue& jobs, serve::ServeCounts& counters,
      const std::function<void()>& looks)
      : self(of), queue(jobs), counts(counters), look(looks) {}

  Completer& self;
  serve::JobQueue& queue;
  serve::ServeCounts& counts;
  const std::function<void()>& look;
  // A job that waits to be scored, and its texts.
  struct Scored {
    OpenPtr job;
    std::vector<std::vector<std::int64_t>> texts;
    std::int64_t tokens = 0;
  };
  std::deque<Scored> scored = {};
  std::vector<std::future<void>> sent = {};  // results that threads send
  std::optional<std::string> draining = {};  // memory whose lane takes no more jobs
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

  bool step();
  void open_lanes();
  bool step_lane(Lane& lane);
  std::vector<Arrival> arrivals(Lane& lane, std::int64_t rows);
  GeneratorCallbacks watch(Lane& lane);
  void complete(OpenPtr job);
  std::deque<Scored> take_scored(std::int64_t most);
  void score(std::deque<Scored> jobs);
  void send(OpenPtr job, std::vector<TokenScores> scores);
  void count_time(bool busy);
};

Completer::Completer(const CompleterOptions& options)
    : options_(options), device_(nn::device(options_.compute.device)),
      loaded_(load_to_decode(
          options_.model, device_, options_.generator.weights, /*adapter=*/{}, torch::kFloat32)) {
  model::give_tokenizer(loaded_, options_.tokenizer);
  answerer_.emplace(answerer_options(options_), loaded_);
  lanes_.push_back(std::unique_ptr<Lane>(new Lane{"", make_generator()}));
  auto& generator = lanes_[0]->generator;
  served_.tokenizer = served_.parsing = generator.shared_tokenizer();
  try {
    served_.parsing = served_.tokenizer->parsing_special();
  } catch (const core::Error&) {  // its special tokens have no texts
  }
  served_.beginning = answerer_->beginning(), served_.begin = generator.begin();
  served_.window = generator.window();
  try {
    served_.empty = generator.encode({});
  } catch (const core::Error&) {  // no token begins a document
  }
  served_.system = options_.system, served_.folder = options_.model;
  if (options_.retrieve.any())
    *options_.turns.model = {options_.turns.evidence > 0 ? word_vectors(loaded_) : nullptr,
        question_gains(loaded_, options_.compute, options_.generator.weights)};
  auto revision = options_.turns.settle(options_.retrieve, /*chat=*/true);
  try {
    auto chat = model::chat_of(options_.model);
    chat.revise_by(revision);
    served_.chat = std::make_shared<const text::Chat>(std::move(chat));
  } catch (const core::Error&) {
    if (!options_.system.empty() || revision) throw;
  }
}

Completer::~Completer() = default;

const std::string& Completer::window_note() const { return lanes_[0]->generator.window_note(); }

MemoryOptions Completer::memory_of(const std::string& asked) const {
  return asked.empty() ? options_.memory : request_memory(options_.memory, asked);
}

// Returns a generator with the server's memory.
Generator Completer::make_generator() const {
  auto options = options_.generator;
  options.kept = options_.kept;
  return {loaded_, std::move(options), options_.memory, device_, /*record=*/true,
      answerer_->open_memories()};
}

void Completer::Run::count_time(bool busy) {
  const auto now = std::chrono::steady_clock::now();
  if (busy)
    counts.busy_microseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - since).count());
  since = now;
}

// Gives lanes to the memories of waiting jobs. A lane whose texts have ended takes another memory.
// If a memory waits for a lane, the first lane that is not the server's takes no more jobs.
void Completer::Run::open_lanes() {
  draining.reset();
  for (;;) {
    std::optional<std::string> other;  // the first memory without a lane
    queue.take([&](const auto& request) {
      const bool has_lane = std::ranges::any_of(
          self.lanes_, [&](const auto& lane) { return lane->memory == request.memory; });
      if (!other && !has_lane && request.max_tokens > 0) other = request.memory;
      return false;
    });
    if (!other) return;
    const auto idle = std::find_if(self.lanes_.begin() + 1, self.lanes_.end(),
        [](const auto& lane) { return lane->texts.empty(); });
    if (idle == self.lanes_.end() && self.lanes_.size() == kMostLanes) {
      draining = self.lanes_[1]->memory;
      return;
    }
    try {
      const auto memory = self.memory_of(*other);
      auto lane = idle == self.lanes_.end()
                      ? std::unique_ptr<Lane>(new Lane{kNoMemory, self.make_generator()})
                      : std::move(*idle);
      if (idle != self.lanes_.end()) self.lanes_.erase(idle);
      lane->memory = kNoMemory;                // until its generator has it
      self.lanes_.push_back(std::move(lane));  // in the order in which they got their memories
      self.lanes_.back()->generator.remember_by(memory);
      self.lanes_.back()->memory = *other;
    } catch (const core::Error& error) {
      while (const auto job =
                 queue.take([&](const auto& request) { return request.memory == *other; }))
        job->fail(kWrong, std::string("memory: ") + error.what());
    }
  }
}

// Returns prompts for free rows. All lanes together have the rows of one, and an empty lane has one
// at least.
std::vector<Arrival> Completer::Run::arrivals(Lane& lane, std::int64_t rows) {
  std::int64_t running = 0;
  for (const auto& other : self.lanes_)
    if (other.get() != &lane) running += static_cast<std::int64_t>(other->running);
  rows = std::min(rows,
      std::max<std::int64_t>(lane.texts.empty() ? 1 : 0, self.options_.generator.batch - running));
  std::vector<Arrival> all;
  if (draining == lane.memory) return all;
  std::int64_t texts = 0;
  bool full = rows <= 0;
  const auto fits = [&](const serve::CompletionRequest& request) {
    if (full || request.max_tokens == 0 || request.memory != lane.memory) return false;
    full = texts > 0 && texts + serve::texts_of(request) > rows;
    return !full;
  };
  while (const auto job = queue.take(fits)) {
    texts += serve::texts_of(job->request);
    const auto open = std::make_shared<OpenJob>(job, self.served_.tokenizer);
    for (std::size_t i = 0; i < job->request.prompts.size(); ++i) {
      lane.texts[lane.generator.prompts() + all.size()] = {open, i};
      all.push_back(open->arrival(i));
    }
  }
  return all;
}

GeneratorCallbacks Completer::Run::watch(Lane& lane) {
  GeneratorCallbacks watch;
  watch.piece = [&](std::uint64_t number, std::int64_t sample, std::string_view piece) {
    const auto& [job, prompt] = lane.texts.at(number);
    job->piece(prompt, sample, piece);
  };
  watch.tokens = [&](std::uint64_t number, std::int64_t sample,
                     std::span<const GrownToken> tokens) {
    const auto& [job, prompt] = lane.texts.at(number);
    job->tokens(prompt, sample, tokens);
  };
  watch.finished = [&](const Sample& sample) {
    const auto [job, prompt] = lane.texts.at(sample.prompt);
    job->finished(prompt, sample);
    ++counts.texts;
    if (!job->generated()) return;
    lane.drop(job);
    complete(job);
  };
  watch.progress = [&](std::uint64_t tokens) {
    lane.running = tokens - std::exchange(lane.tokens, tokens);
    counts.completion_tokens += lane.running;
  };
  return watch;
}

// Does a step of a lane's texts. Returns false if it has none.
bool Completer::Run::step_lane(Lane& lane) {
  Arrivals given;
  given.next = [&](std::int64_t rows) { return arrivals(lane, rows); };
  given.wanted = [&](std::uint64_t prompt) {
    const auto found = lane.texts.find(prompt);
    if (found == lane.texts.end()) return false;
    if (!found->second.first->cancelled()) return true;
    lane.drop(OpenPtr(found->second.first));
    return false;
  };
  lane.running = 0;
  const auto reused = lane.generator.reused();
  try {
    const bool shared = !scored.empty() || std::ranges::any_of(self.lanes_, [&](const auto& other) {
      return other.get() != &lane && !other->texts.empty();
    });
    const bool any = lane.generator.step(given, watch(lane), shared);
    counts.reused_tokens += lane.generator.reused() - reused;
    return any;
  } catch (const std::exception& error) {
    for (const auto& [number, text] : std::exchange(lane.texts, {}))
      text.first->fail(kFault, error.what());
    return true;
  }
}

// Tells the results of a job whose texts are generated, unless it is to be scored first.
void Completer::Run::complete(OpenPtr job) {
  auto texts = job->to_score();
  const auto tokens = core::sum_of(texts, [](const auto& text) { return std::ssize(text); });
  if (!texts.empty()) return scored.push_back({std::move(job), std::move(texts), tokens});
  counts.prompt_tokens += static_cast<std::uint64_t>(job->usage().prompt);
  job->send({}, self.options_.generator.cite);
}

// Tells the results of a scored job in a thread of its own: those of a long text take seconds.
void Completer::Run::send(OpenPtr job, std::vector<TokenScores> scores) {
  counts.prompt_tokens += static_cast<std::uint64_t>(job->usage().prompt);
  sent.push_back(std::async(std::launch::async, [job = std::move(job), scores = std::move(scores),
                                                    cite = self.options_.generator.cite]() mutable {
    try {
      job->send(std::exchange(scores, {}), cite);
    } catch (const std::exception& error) { job->fail(kFault, error.what()); }
  }));
}

// Takes the first job that waits to be scored and has `most` tokens at most, and further ones with
// its memory, as many as are scored together.
std::deque<Completer::Run::Scored> Completer::Run::take_scored(std::int64_t most) {
  std::deque<Scored> taken;
  std::int64_t tokens = 0;
  for (auto one = scored.begin(); one != scored.end();) {
    const auto limit = taken.empty() ? most : std::min(most, kTogether) - tokens;
    const bool fits = one->tokens <= limit && (taken.empty() || one->job->request().memory ==
                                                                    taken[0].job->request().memory);
    if (!fits) {
      ++one;
      continue;
    }
    tokens += one->tokens;
    taken.push_back(std::move(*one));
    one = scored.erase(one);
  }
  return taken;
}

// Scores jobs with one memory in pieces, between which the texts grow, and jobs of at most half the
// tokens are scored: so these do not wait for a long one, which goes on nevertheless.
void Completer::Run::score(std::deque<Scored> jobs) {
  std::erase_if(jobs, [](const auto& one) { return one.job->cancelled(); });
  if (jobs.empty()) return;
  std::vector<std::vector<std::int64_t>> texts;
  std::int64_t tokens = 0;
  for (const auto& one : jobs) {
    texts.insert(texts.end(), one.texts.begin(), one.texts.end());
    tokens += one.tokens;
  }
  Pace pace(self.sizes_, [&] {
    const bool growing = step();
    score(take_scored(tokens / 2));
    for (const auto& one : jobs)
      if (one.job->cancelled()) throw ClientLeft();
    return growing || !scored.empty();
  });
  try {
    const auto& memory = jobs[0].job->request().memory;
    auto& answerer = *self.answerer_;
    std::optional<MemoryPlan> own;
    try {
      if (!memory.empty()) own = answerer.plan(self.memory_of(memory));
    } catch (const core::Error& error) {
      for (const auto& one : jobs) one.job->fail(kWrong, std::string("memory: ") + error.what());
      return;
    }
    auto scores = answerer.score_tokens(texts, own ? *own : answerer.memory(), &pace);
    auto first = std::make_move_iterator(scores.begin());
    for (const auto& one : jobs) {
      const auto end = first + std::ssize(one.texts);
      send(one.job, {first, end});
      first = end;
    }
  } catch (const ClientLeft&) {
    return score(std::move(jobs));
  } catch (const std::exception& error) {
    for (const auto& one : jobs) one.job->fail(kFault, error.what());
  }
}

// Takes jobs, and does a step of each lane. Returns whether there are texts.
bool Completer::Run::step() {
  look();
  std::erase_if(sent, [](const auto& one) {
    return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  // Texts that are only scored need no row and no lane.
  while (auto job = queue.take([](const auto& request) { return request.max_tokens == 0; }))
    complete(std::make_shared<OpenJob>(std::move(job), self.served_.tokenizer));
  open_lanes();
  bool any = false;
  std::uint64_t running = 0;
  for (const auto& lane : self.lanes_) {
    any |= step_lane(*lane);
    running += lane->running;
  }
  counts.running = running;
  return any;
}

void Completer::run(
    serve::JobQueue& queue, serve::ServeCounts& counts, const std::function<void()>& look) {
  Run run(*this, queue, counts, look);
  for (;;) {
    const bool closed = queue.closed();
    const bool growing = run.step();
    const bool busy = growing || !run.scored.empty();
    run.score(run.take_scored(INT64_MAX));
    run.count_time(busy);
    if (busy) continue;
    if (closed) return;
    queue.wait(kLook);
  }
}

}  // namespace infer
