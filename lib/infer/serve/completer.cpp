#include "infer/serve/completer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>

#include "core/error.h"
#include "infer/serve/request_memory.h"
#include "model/model_chat.h"
#include "text/tokenizer/special_text.h"

namespace infer {
namespace {

using serve::CompletionJob;
using Event = CompletionJob::Event;

constexpr int kWrong = 400, kFault = 500;

struct AllLeft {};

GeneratorOptions generator_options(const CompleterOptions& options) {
  GeneratorOptions made;
  made.batch = options.batch;
  made.window = options.window;
  made.weights = options.weights;
  made.cite = options.cite;
  made.cite_k = options.cite_k;
  made.reach = options.reach;
  made.seed = options.seed;
  return made;
}

AnswererOptions answerer_options(const CompleterOptions& options) {
  AnswererOptions made;
  made.model = options.model;
  made.tokenizer = options.tokenizer;
  made.windows.window = options.window;
  made.reach = options.reach;
  made.memory = options.memory;
  made.compute.device = options.compute.device;
  made.likely = options.likely;
  return made;
}

}  // namespace

void CompleterOptions::fields(core::FieldList& f) {
  auto& folder = f("model", model, "folder of the model");
  folder.short_name = 'm', folder.required = true;
  f("tokenizer", tokenizer, "tokenizer.json, or `bytes`, if the model's folder has no tokenizer")
      .short_name = 't';
  f("system", system, "system message of conversations without one");
  f("batch", batch, "texts decoded in one batch").between(1, 65536);
  f("window", window, "context length in tokens; auto: the trained length")
      .between(1, 1e9)
      .or_auto();
  f("dtype", weights, "data type of the weights during decoding", {"float32", "bfloat16", "int8"});
  f("cite", cite, "return the stored contexts that predicted each token");
  f("cite-k", cite_k, "cited contexts per token").between(1, 65536);
  reach.fields(f);
  memory.fields(f);
  compute.fields(f);
}

// One prompt of a job and its texts.
struct Completer::Text {
  serve::JobPtr job;
  std::int64_t first = 0;  // index of its first choice
  Prompt prompt;
  std::vector<std::int64_t> tokens;  // of the prompt and what precedes it
  std::int64_t before = 0;           // number of them before the prompt's own text
  std::map<std::int64_t, Sample> samples = {};
};

Completer::Completer(const CompleterOptions& options) : options_(options) {
  const auto device = nn::device(options_.compute.device);
  auto loaded = model::load(options_.model, device, torch::kFloat32);
  model::give_tokenizer(loaded, options_.tokenizer);
  answerer_.emplace(answerer_options(options_), loaded);
  generator_.emplace(std::move(loaded), generator_options(options_), options_.memory, device,
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

// Adds the job's prompts as texts, or reports an error to the job.
void Completer::open(const serve::JobPtr& job, std::vector<Text>& texts) {
  const auto& request = job->request;
  std::vector<Text> own;
  const auto add = [&](Prompt prompt) {
    prompt.origin = "prompt";
    prompt.max_tokens = request.max_tokens;
    prompt.stop = request.stop;
    prompt.temperature = request.temperature;
    prompt.seed = request.seed;
    Text text{job, std::ssize(own) * request.n, std::move(prompt), {}};
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
      const auto messages = text::parse_messages(request.messages, "messages");
      const bool has_system = !messages.empty() && messages[0].is_object() &&
                              messages[0].value("role", core::OrderedJson()) == "system";
      prompt.text = chat_->prompt(messages, has_system ? "" : options_.system, "messages");
      prompt.whole = true;
      add(std::move(prompt));
    }
    for (const auto& one : request.prompts) {
      Prompt prompt;
      prompt.text = one.text;
      prompt.tokens = one.tokens;
      add(std::move(prompt));
    }
  } catch (const core::Error& error) {
    return job->fail(kWrong, error.what());
  }
  std::move(own.begin(), own.end(), std::back_inserter(texts));
}

void Completer::draw(const std::vector<serve::JobPtr>& jobs, std::vector<Text>& texts) {
  const auto& request = jobs.front()->request;
  generator_->draw_by(request.top_k, request.top_p, request.n);
  std::vector<Prompt> prompts;
  std::map<std::uint64_t, Text*> by_number;
  for (auto& text : texts) {
    if (text.job->request.max_tokens == 0) continue;
    by_number[generator_->prompts() + prompts.size()] = &text;
    prompts.push_back(text.prompt);
  }
  if (prompts.empty()) return;
  GeneratorCallbacks watch;
  watch.piece = [&](std::uint64_t number, std::int64_t sample, std::string_view piece) {
    Text& text = *by_number.at(number);
    if (!text.job->request.stream) return;
    Event event{Event::Kind::piece};
    event.choice.index = text.first + sample;
    event.choice.text = piece;
    text.job->tell(std::move(event));
  };
  watch.finished = [&](const Sample& sample) {
    by_number.at(sample.prompt)->samples[sample.sample] = sample;
  };
  watch.progress = [&](std::uint64_t /*tokens*/) {
    if (std::all_of(jobs.begin(), jobs.end(), [](const auto& job) { return job->cancelled(); }))
      throw AllLeft{};
  };
  generator_->run(prompts, watch);
}

std::string Completer::text_of(std::int64_t token) const {
  bool line_start = false;
  std::string text;
  generator_->tokenizer().decode_token(static_cast<std::uint32_t>(token), line_start, text);
  return text;
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
  bool line_start = true;
  std::string echo;
  for (const auto id : text.tokens)
    generator_->tokenizer().decode_token(static_cast<std::uint32_t>(id), line_start, echo);
  return echo;
}

// Reports each text's choices, with the tokens' log-probabilities if requested.
void Completer::tell_choices(std::vector<Text>& texts) {
  std::vector<std::vector<std::int64_t>> all;  // of each choice that requests tokens
  for (const auto& text : texts) {
    if (!text.job->request.logprobs) continue;
    for (std::int64_t i = 0; i < text.job->request.n; ++i) {
      auto& tokens = all.emplace_back(text.tokens);
      const auto found = text.samples.find(i);
      if (found == text.samples.end()) continue;
      const auto shown = shown_tokens(found->second);
      tokens.insert(tokens.end(), shown.begin(), shown.end());
    }
  }
  const auto scores = answerer_->score_tokens(all);
  std::size_t scored = 0;
  for (const auto& text : texts) {
    const auto& request = text.job->request;
    for (std::int64_t i = 0; i < request.n; ++i) {
      Event event{Event::Kind::choice};
      auto& choice = event.choice;
      choice.index = text.first + i;
      choice.finish = "length";
      if (request.echo) choice.text = echo_of(text);
      if (const auto found = text.samples.find(i); found != text.samples.end()) {
        choice.text += found->second.text;
        if (found->second.finish != Finish::length) choice.finish = "stop";
        if (options_.cite) choice.extra = {{"citations", to_json(found->second.cited)}};
      }
      if (request.logprobs) {
        const auto from = request.echo ? text.before : std::ssize(text.tokens);
        choice.tokens = tokens_of(all[scored], from, scores[scored], *request.logprobs);
        ++scored;
      }
      text.job->tell(std::move(event));
    }
  }
}

void Completer::complete(const std::vector<serve::JobPtr>& jobs, serve::ServeCounts& counts) {
  const auto start = std::chrono::steady_clock::now();
  if (!remember(jobs)) return;
  std::vector<Text> texts;
  for (const auto& job : jobs) open(job, texts);
  const auto fail_all = [&](const std::string& why) {
    for (const auto& text : texts) text.job->fail(kFault, why);
  };
  try {
    for (const auto& text : texts) {
      const auto& request = text.job->request;
      if (!request.stream || !request.echo) continue;
      for (std::int64_t i = 0; i < request.n; ++i) {
        Event event{Event::Kind::piece};
        event.choice.index = text.first + i;
        event.choice.text = echo_of(text);
        text.job->tell(std::move(event));
      }
    }
    draw(jobs, texts);
    tell_choices(texts);
  } catch (const AllLeft&) {
    texts.clear();
  } catch (const std::exception& error) {
    fail_all(error.what());
    texts.clear();
  }
  std::map<CompletionJob*, serve::CompletionUsage> usages;
  for (const auto& text : texts) {
    auto& usage = usages[text.job.get()];
    usage.prompt += std::ssize(text.tokens);
    counts.prompt_tokens += text.tokens.size();
    for (const auto& [number, sample] : text.samples) {
      usage.completion += std::ssize(sample.tokens);
      counts.completion_tokens += sample.tokens.size();
      ++counts.texts;
    }
  }
  for (const auto& job : jobs) {
    const auto found = usages.find(job.get());
    if (found == usages.end()) continue;
    Event event{Event::Kind::done};
    event.usage = found->second;
    job->tell(std::move(event));
  }
  counts.busy_microseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::steady_clock::now() - start)
                                     .count());
}

}  // namespace infer
