#include "infer/serve/completer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>

#include "core/error.h"
#include "infer/loops/make_engine.h"
#include "infer/serve/request_memory.h"
#include "model/model_chat.h"
#include "text/tokenizer/special_text.h"

namespace infer {
namespace {

using serve::CompletionJob;
using Event = CompletionJob::Event;

constexpr int kWrong = 400, kFault = 500;

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
  f("window", generator.window, "context length in tokens; auto: the trained length")
      .between(1, 1e9)
      .or_auto();
  f("dtype", generator.weights, "data type of the weights during decoding",
    {"float32", "bfloat16", "int8"});
  f("cite", generator.cite, "return the stored contexts that predicted each token");
  f("cite-k", generator.cite_k, "cited contexts per token").between(1, 65536);
  generator.reach.fields(f);
  memory.fields(f);
  compute.fields(f);
}

// One prompt of a job and its texts.
struct Completer::Text {
  std::int64_t first = 0;  // index of its first choice
  const serve::CompletionPrompt& prompt;
  std::map<std::int64_t, Sample> samples = {};
  // What a stream with log-probabilities has sent, by the number of the sample.
  struct Sent {
    std::string text = {};
    std::vector<serve::CompletionToken> tokens = {};  // of the next piece
    std::vector<std::size_t> begins = {};             // of these, in bytes
    serve::CharacterCount characters = {};
  };
  std::map<std::int64_t, Sent> sent = {};
};

namespace {

// Whether each event of a stream has the log-probabilities of its tokens, as the model that writes
// them computes them. With `echo`, the last event has those of all tokens.
bool streams_tokens(const serve::CompletionRequest& request) {
  return request.stream && request.logprobs && !request.echo && request.max_tokens > 0;
}

// Whether a second pass scores the texts.
bool wants_scores(const serve::CompletionRequest& request) {
  return request.logprobs && !streams_tokens(request);
}

Arrival arrival_of(const serve::CompletionRequest& request, const serve::CompletionPrompt& of) {
  Prompt prompt;
  prompt.origin = "prompt";
  prompt.tokens = of.tokens;
  prompt.max_tokens = request.max_tokens;
  prompt.stop = request.stop;
  prompt.temperature = request.temperature;
  prompt.seed = request.seed;
  return {std::move(prompt), request.n,
          DrawOptions{request.temperature, request.top_k, request.top_p},
          std::make_shared<const LogitRules>(
              LogitRules{request.allowed, request.biases, request.repetition_penalty,
                         request.frequency_penalty, request.presence_penalty}),
          streams_tokens(request) ? *request.logprobs : -1};
}

// Finds where the pieces of a text begin. The text may differ from its pieces: a tokenizer may
// normalise it, and unknown characters have no piece. A piece that is not where the last one ends
// is looked for a little behind it.
class PieceFinder {
 public:
  explicit PieceFinder(std::string_view text) : text_(text) {}
  std::size_t next(std::string_view piece) {
    constexpr std::size_t kNear = 64;
    const auto near = text_.substr(0, end_ + piece.size() + kNear);
    const auto found = text_.substr(end_).starts_with(piece) ? end_ : near.find(piece, end_);
    if (found == near.npos) return end_;
    end_ = found + piece.size();
    return found;
  }

 private:
  std::string_view text_;
  std::size_t end_ = 0;  // of the last piece
};

}  // namespace

// A job and its prompts.
struct Completer::Open {
  serve::JobPtr job;
  std::vector<Text> texts = {};
  std::int64_t left = 0;  // texts to generate
};

// The jobs of a call of complete().
struct Completer::Running {
  const JobFeed& feed;
  serve::ServeCounts& counts;
  std::deque<serve::JobPtr> jobs;                 // not opened yet
  std::deque<std::shared_ptr<Open>> scored = {};  // wait to be scored without a generated text
  // Jobs whose texts are generated, by the generator's number of each prompt.
  struct GeneratedText {
    std::shared_ptr<Open> open;
    std::size_t text;
    Text& at() const { return open->texts[text]; }
  };
  std::map<std::uint64_t, GeneratedText> generated = {};
  std::uint64_t tokens = 0;  // counted
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

  void count_time() {
    const auto now = std::chrono::steady_clock::now();
    counts.busy_microseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - since).count());
    since = now;
  }
  void close(const Open& open) {
    std::erase_if(generated, [&](const auto& one) { return one.second.open.get() == &open; });
  }
};

Completer::Completer(const CompleterOptions& options) : options_(options) {
  const auto device = nn::device(options_.compute.device);
  auto loaded = load_to_decode(options_.model, device, parse_precision(options_.generator.weights),
                               /*adapter=*/{}, torch::kFloat32);
  model::give_tokenizer(loaded, options_.tokenizer);
  answerer_.emplace(answerer_options(options_), loaded);
  generator_.emplace(std::move(loaded), options_.generator, options_.memory, device,
                     /*record=*/true, answerer_->open_memories());
  served_.tokenizer = served_.parsing = generator_->shared_tokenizer();
  try {
    served_.parsing = text::parsing_special(*served_.tokenizer);
  } catch (const core::Error&) {  // its special tokens have no texts
  }
  served_.beginning = answerer_->beginning(), served_.begin = generator_->begin();
  served_.window = generator_->window();
  try {
    served_.empty = generator_->encode({});
  } catch (const core::Error&) {  // no token begins a document
  }
  served_.system = options_.system, served_.folder = options_.model;
  try {
    served_.chat = std::make_shared<const text::Chat>(model::chat_of(options_.model));
  } catch (const core::Error&) {
    if (!options_.system.empty()) throw;
  }
}

// The memories that jobs which go together ask for. False: they are told what is wrong with them.
bool Completer::remember(const std::vector<serve::JobPtr>& jobs) {
  const auto& asked = jobs.front()->request.memory;
  if (asked == memory_) return true;
  const auto set = [&](const MemoryOptions& memory) {
    generator_->remember_by(memory);
    answerer_->remember_by(memory);
  };
  try {
    set(asked.empty() ? options_.memory : request_memory(options_.memory, asked));
    memory_ = asked;
    return true;
  } catch (const core::Error& error) {
    for (const auto& job : jobs) job->fail(kWrong, std::string("memory: ") + error.what());
  }
  set(options_.memory);
  memory_.clear();
  return false;
}

// Adds the job's prompts as texts.
void Completer::open(Open& open) const {
  const auto& request = open.job->request;
  for (const auto& prompt : request.prompts)
    open.texts.push_back({std::ssize(open.texts) * request.n, prompt});
  if (request.max_tokens > 0) open.left = std::ssize(open.texts) * request.n;
  for (const auto& text : open.texts) {
    if (!request.stream || !request.echo) continue;
    for (std::int64_t i = 0; i < request.n; ++i) {
      Event event{Event::Kind::piece};
      event.choice.index = text.first + i;
      event.choice.text = text.prompt.text;
      open.job->tell(std::move(event));
    }
  }
}

// Returns prompts for free rows. Jobs that are only scored are scored here: one between two steps
// while texts are generated, so that these do not wait for long, else all together.
std::vector<Arrival> Completer::arrivals(Running& running, std::int64_t rows) {
  std::vector<Arrival> all;
  for (;;) {
    if (running.jobs.empty())
      for (auto& job : running.feed.next(rows, memory_)) running.jobs.push_back(std::move(job));
    if (running.jobs.empty()) break;
    while (!running.jobs.empty()) {
      const auto opened = std::make_shared<Open>(std::move(running.jobs.front()));
      running.jobs.pop_front();
      const auto& request = opened->job->request;
      if (opened->job->cancelled()) continue;
      open(*opened);
      if (opened->left == 0) running.scored.push_back(opened);
      for (std::size_t i = 0; i < opened->texts.size() && opened->left > 0; ++i) {
        running.generated[generator_->prompts() + all.size()] = {opened, i};
        all.push_back(arrival_of(request, opened->texts[i].prompt));
      }
    }
    if (!running.generated.empty()) break;
    finish(running, {running.scored.begin(), running.scored.end()});
    running.scored.clear();
  }
  if (!running.scored.empty()) {
    finish(running, {running.scored.front()});
    running.scored.pop_front();
  }
  return all;
}

GeneratorCallbacks Completer::watch(Running& running) {
  GeneratorCallbacks watch;
  watch.piece = [&](std::uint64_t number, std::int64_t sample, std::string_view piece) {
    const auto& text = running.generated.at(number);
    if (!text.open->job->request.stream) return;
    Event event{Event::Kind::piece};
    event.choice.index = text.at().first + sample;
    event.choice.text = piece;
    if (streams_tokens(text.open->job->request))
      event.choice.tokens = sent(text.at(), sample, piece);
    text.open->job->tell(std::move(event));
  };
  watch.tokens = [&](std::uint64_t number, std::int64_t sample,
                     std::span<const GrownToken> tokens) {
    auto& to = running.generated.at(number).at().sent[sample];
    for (const auto& token : tokens) {
      auto& one = to.tokens.emplace_back();
      one.text = text_of(token.token), one.log_prob = token.log_prob;
      for (const auto& [id, log_prob] : token.likely)
        one.likely.emplace_back(text_of(id), log_prob);
      to.begins.push_back(token.begin);
    }
  };
  watch.finished = [&](const Sample& sample) {
    const auto text = running.generated.at(sample.prompt);
    text.at().samples[sample.sample] = sample;
    ++running.counts.texts;
    if (--text.open->left > 0) return;
    running.close(*text.open);
    finish(running, {text.open});
  };
  watch.progress = [&](std::uint64_t tokens) {
    running.counts.completion_tokens += tokens - running.tokens;
    running.counts.running = tokens - running.tokens;
    running.tokens = tokens;
    running.count_time();
    if (running.feed.step) running.feed.step();
  };
  return watch;
}

// Returns the tokens of a piece of a stream, and adds the piece to what was sent.
std::vector<serve::CompletionToken> Completer::sent(Text& text, std::int64_t sample,
                                                    std::string_view piece) const {
  auto& to = text.sent[sample];
  to.text += piece;
  for (std::size_t i = 0; i < to.tokens.size(); ++i)
    to.tokens[i].offset = to.characters.before(to.text, to.begins[i]);
  to.begins.clear();
  return std::exchange(to.tokens, {});
}

// Returns the byte at which each token of a choice begins in its text, which has the prompt if the
// request echoes it.
std::vector<std::size_t> Completer::begins_of(const Text& text,
                                              const std::vector<std::int64_t>& all) const {
  text::StreamDecoder decoder(generator_->shared_tokenizer());
  const std::string_view echo = text.prompt.text;
  PieceFinder finder(echo);
  std::vector<std::size_t> begins;
  std::size_t generated = echo.size();
  for (std::int64_t at = 0; at < std::ssize(all); ++at) {
    std::string piece;
    decoder.push(static_cast<std::uint32_t>(all[static_cast<std::size_t>(at)]), piece);
    if (at >= std::ssize(text.prompt.tokens))
      begins.push_back(std::exchange(generated, generated + piece.size()));
    else
      begins.push_back(at < text.prompt.before ? 0 : finder.next(piece));
  }
  return begins;
}

std::string Completer::text_of(std::int64_t token) const {
  const auto id = static_cast<std::uint32_t>(token);
  return generator_->tokenizer().decode({&id, 1}, false);
}

// Returns the tokens from `from` on of a scored text. The first token has no score, and the scores
// begin after it.
std::vector<serve::CompletionToken> Completer::tokens_of(const std::vector<std::int64_t>& all,
                                                         std::int64_t from,
                                                         const TokenScores& scores,
                                                         std::int64_t likely) const {
  std::vector<serve::CompletionToken> made;
  for (auto at = static_cast<std::size_t>(from); at < all.size(); ++at) {
    auto& one = made.emplace_back();
    one.text = text_of(all[at]);
    if (at == 0) continue;
    one.log_prob = scores.log_prob[at - 1];
    const auto& words = scores.details[at - 1].likely;
    for (std::size_t n = 0; n < std::min(static_cast<std::size_t>(likely), words.size()); ++n) {
      const auto& [token, probability] = words[n];
      // The token's own number, to the bit: clients compare the two to see whether it is the best.
      const auto log_prob = token == all[at] ? *one.log_prob : std::log(probability);
      one.likely.emplace_back(text_of(token), log_prob);
    }
  }
  return made;
}

// Returns the tokens of a text's visible part: without the end token and without tokens of a stop
// string.
std::vector<std::int64_t> Completer::shown_tokens(const Sample& sample) const {
  auto tokens = sample.tokens;
  if (sample.finish == Finish::end) tokens.pop_back();
  if (sample.finish != Finish::stop) return tokens;
  std::size_t bytes = 0, n = 0;
  while (n < tokens.size() && bytes < sample.text.size()) bytes += text_of(tokens[n++]).size();
  tokens.resize(n);
  return tokens;
}

// Reports each job's choices, with the tokens' log-probabilities if requested.
// Throws ClientLeft if a job is cancelled meanwhile.
void Completer::tell_choices(const std::vector<std::shared_ptr<Open>>& jobs, const JobFeed& feed) {
  std::vector<std::vector<std::int64_t>> all;  // of each choice that requests tokens
  for (const auto& open : jobs) {
    const auto& request = open->job->request;
    for (const auto& text : open->texts) {
      for (std::int64_t i = 0; wants_scores(request) && i < request.n; ++i) {
        auto& tokens = all.emplace_back(text.prompt.tokens);
        const auto found = text.samples.find(i);
        if (found == text.samples.end()) continue;
        const auto shown = shown_tokens(found->second);
        tokens.insert(tokens.end(), shown.begin(), shown.end());
      }
    }
  }
  const auto between = [&] {
    if (feed.step) feed.step();
    for (const auto& open : jobs)
      if (open->job->cancelled()) throw ClientLeft();
  };
  const auto scores = answerer_->score_tokens(all, between);
  std::size_t scored = 0;
  for (const auto& open : jobs) {
    const auto& request = open->job->request;
    for (auto& text : open->texts) {
      for (std::int64_t i = 0; i < request.n; ++i) {
        Event event{Event::Kind::choice};
        auto& choice = event.choice;
        choice.index = text.first + i;
        choice.finish = "length";
        choice.text = text.prompt.text;
        if (const auto found = text.samples.find(i); found != text.samples.end()) {
          choice.text += found->second.text;
          if (found->second.finish != Finish::length) choice.finish = "stop";
          if (options_.generator.cite) choice.extra = {{"citations", to_json(found->second.cited)}};
        }
        if (wants_scores(request)) {
          const auto from = request.echo ? text.prompt.before : std::ssize(text.prompt.tokens);
          choice.tokens = tokens_of(all[scored], from, scores[scored], *request.logprobs);
          const auto begins = begins_of(text, all[scored]);
          serve::CharacterCount characters;
          for (auto& token : *choice.tokens)
            token.offset = characters.before(
                choice.text,
                begins[static_cast<std::size_t>(from + (&token - choice.tokens->data()))]);
          ++scored;
        } else if (streams_tokens(request)) {
          choice.tokens = sent(text, i, "");
        }
        open->job->tell(std::move(event));
      }
    }
  }
}

// Reports the results of jobs whose texts are complete.
void Completer::finish(Running& running, std::vector<std::shared_ptr<Open>> jobs) {
  std::erase_if(jobs, [](const auto& open) { return open->job->cancelled(); });
  try {
    tell_choices(jobs, running.feed);
  } catch (const ClientLeft&) {
    return finish(running, std::move(jobs));
  } catch (const std::exception& error) {
    for (const auto& open : jobs) open->job->fail(kFault, error.what());
    return;
  }
  for (const auto& open : jobs) {
    Event event{Event::Kind::done};
    for (const auto& text : open->texts) {
      event.usage.prompt += std::ssize(text.prompt.tokens);
      for (const auto& [number, sample] : text.samples)
        event.usage.completion += std::ssize(sample.tokens);
    }
    running.counts.prompt_tokens += static_cast<std::uint64_t>(event.usage.prompt);
    open->job->tell(std::move(event));
  }
}

void Completer::complete(const std::vector<serve::JobPtr>& jobs, const JobFeed& feed,
                         serve::ServeCounts& counts) {
  if (!remember(jobs)) return;
  Running running{feed, counts, {jobs.begin(), jobs.end()}};
  running.tokens = generator_->tokens();
  Arrivals given;
  given.next = [&](std::int64_t rows) { return arrivals(running, rows); };
  given.wanted = [&](std::uint64_t prompt) {
    const auto found = running.generated.find(prompt);
    if (found == running.generated.end()) return false;
    if (!found->second.open->job->cancelled()) return true;
    running.close(*std::shared_ptr(found->second.open));
    return false;
  };
  try {
    generator_->run(given, watch(running));
  } catch (const std::exception& error) {
    for (const auto& [number, text] : running.generated) text.open->job->fail(kFault, error.what());
    for (const auto& open : running.scored) open->job->fail(kFault, error.what());
    for (const auto& job : running.jobs) job->fail(kFault, error.what());
  }
  counts.running = 0;
  running.count_time();
}

}  // namespace infer
