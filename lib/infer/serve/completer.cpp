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
  Prompt prompt;
  std::vector<std::int64_t> tokens;  // of the prompt and what precedes it
  std::int64_t before = 0;           // number of them before the prompt's own text
  std::map<std::int64_t, Sample> samples = {};
};

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
  try {
    chat_ = model::chat_of(options_.model);
  } catch (const core::Error&) {
    if (!options_.system.empty()) throw;
  }
}

serve::ServedTokenizer Completer::tokens() const {
  serve::ServedTokenizer served{generator_->shared_tokenizer(), answerer_->beginning(),
                                generator_->begin(), window()};
  try {
    served.tokenizer = text::parsing_special(*served.tokenizer);
  } catch (const core::Error&) {  // its special tokens have no texts
  }
  return served;
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

// Returns a message for clients, who are not to see where the server keeps its model.
std::string Completer::without_folder(std::string text) const {
  if (options_.model.find('/') == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find(options_.model, at)) != text.npos;)
    text.replace(at, options_.model.size(), "the model");
  return text;
}

// Adds the job's prompts as texts. False: the job is told what is wrong.
bool Completer::open(Open& open) {
  const auto& request = open.job->request;
  auto& own = open.texts;
  const auto add = [&](Prompt prompt) {
    prompt.origin = "prompt";
    prompt.max_tokens = request.max_tokens;
    prompt.stop = request.stop;
    prompt.temperature = request.temperature;
    prompt.seed = request.seed;
    Text text{std::ssize(own) * request.n, std::move(prompt), {}};
    text.tokens = generator_->encode(text.prompt);
    if (!text.prompt.tokens && !text.prompt.whole)
      text.before =
          std::ssize(text.tokens) - std::ssize(generator_->tokenizer().encode(text.prompt.text));
    const auto length = std::ssize(text.tokens);
    if (request.max_tokens > 0 && length > window())
      core::fail(core::Code::bad_data, "the prompt has {} tokens, more than the window of {}",
                 length, window());
    own.push_back(std::move(text));
  };
  try {
    if (request.chat) {
      Prompt prompt;
      const std::string origin = "the request";
      const auto messages = text::parse_messages(request.messages, origin);
      const bool has_system = !messages.empty() && messages[0].is_object() &&
                              messages[0].value("role", core::OrderedJson()) == "system";
      prompt.text = chat_->prompt(messages, has_system ? "" : options_.system, origin);
      prompt.whole = true;
      add(std::move(prompt));
    }
    for (const auto& one : request.prompts) {
      Prompt prompt;
      prompt.text = one.text;
      prompt.tokens = one.tokens;
      add(std::move(prompt));
    }
    std::int64_t tokens = 0;
    for (const auto& text : own) tokens += std::ssize(text.tokens);
    if (request.logprobs && tokens > options_.scored / request.n)
      core::fail(core::Code::bad_data,
                 "logprobs: the prompts have {} tokens, and {} texts each; the server scores at "
                 "most {} tokens of a request",
                 tokens, request.n, options_.scored);
  } catch (const core::Error& error) {
    open.job->fail(kWrong, without_folder(error.what()));
    return false;
  }
  if (request.max_tokens > 0) open.left = std::ssize(own) * request.n;
  for (const auto& text : own) {
    if (!request.stream || !request.echo) continue;
    for (std::int64_t i = 0; i < request.n; ++i) {
      Event event{Event::Kind::piece};
      event.choice.index = text.first + i;
      event.choice.text = echo_of(text);
      open.job->tell(std::move(event));
    }
  }
  return true;
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
      if (opened->job->cancelled() || !open(*opened)) continue;
      if (opened->left == 0) running.scored.push_back(opened);
      for (std::size_t i = 0; i < opened->texts.size() && opened->left > 0; ++i) {
        running.generated[generator_->prompts() + all.size()] = {opened, i};
        all.push_back({opened->texts[i].prompt, request.n, request.top_k, request.top_p});
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
    text.open->job->tell(std::move(event));
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

std::string Completer::echo_of(const Text& text) const {
  if (!text.prompt.tokens) return text.prompt.text;
  const std::vector<std::uint32_t> ids(text.tokens.begin(), text.tokens.end());
  return generator_->tokenizer().decode(ids);
}

// Reports each job's choices, with the tokens' log-probabilities if requested.
// Throws ClientLeft if a job is cancelled meanwhile.
void Completer::tell_choices(const std::vector<std::shared_ptr<Open>>& jobs, const JobFeed& feed) {
  std::vector<std::vector<std::int64_t>> all;  // of each choice that requests tokens
  for (const auto& open : jobs) {
    const auto& request = open->job->request;
    for (const auto& text : open->texts) {
      for (std::int64_t i = 0; request.logprobs && i < request.n; ++i) {
        auto& tokens = all.emplace_back(text.tokens);
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
    for (const auto& text : open->texts) {
      for (std::int64_t i = 0; i < request.n; ++i) {
        Event event{Event::Kind::choice};
        auto& choice = event.choice;
        choice.index = text.first + i;
        choice.finish = "length";
        if (request.echo) choice.text = echo_of(text);
        if (const auto found = text.samples.find(i); found != text.samples.end()) {
          choice.text += found->second.text;
          if (found->second.finish != Finish::length) choice.finish = "stop";
          if (options_.generator.cite) choice.extra = {{"citations", to_json(found->second.cited)}};
        }
        if (request.logprobs) {
          const auto from = request.echo ? text.before : std::ssize(text.tokens);
          choice.tokens = tokens_of(all[scored], from, scores[scored], *request.logprobs);
          ++scored;
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
      event.usage.prompt += std::ssize(text.tokens);
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
