#include "infer/serve/open_job.h"

#include "core/plain_text.h"

namespace infer {
namespace {

using core::Json;

// Returns the kind that an option adds; null: none.
const SourceKind* kind_of(const core::Field& field) {
  const auto* const kind = core::find_by(source_kinds(), field.name, &SourceKind::name);
  return kind == nullptr ? nullptr : *kind;
}

// Whether an option's values are names of files or were read from files: texts that add a source
// or that no kind lists.
bool names_files(const core::Field& field) {
  if (!std::holds_alternative<std::vector<std::string>*>(field.target)) return false;
  return kind_of(field) != nullptr || std::ranges::none_of(source_kinds(), [&](const auto* kind) {
    return std::ranges::count(kind->options(), field.name) > 0;
  });
}

std::string text_of(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_structured() || value.is_null())
    core::bad_usage("{}: takes a number, a text, true or false", name);
  return core::dump(value);
}

void take(const core::Field& field, const std::string& name, const Json& value) {
  if (names_files(field)) {
    if (!value.is_array() || !value.empty())
      core::bad_usage("{}: is set when the server starts; [] leaves it out", name);
    std::get<std::vector<std::string>*>(field.target)->clear();
    return;
  }
  std::vector<std::string> values;
  if (value.is_array() && field.is_list())
    for (const Json& one : value) values.push_back(text_of(name, one));
  else values.push_back(text_of(name, value));
  try {
    core::assign(field, values);
  } catch (const core::Error& error) { core::bad_usage("{}", error.what()); }
}

using Event = serve::CompletionJob::Event;

// A text as a tokenizer changes it, and where the characters of each byte begin in the text.
struct NormalForm {
  std::string text;
  std::vector<std::size_t> from;  // and the end
};

NormalForm normal_form(std::string_view text, const text::Tokenizer& tokenizer) {
  constexpr int kMost = 16;  // characters that change together, such as a letter and its accents
  std::unordered_map<std::string, std::string> forms;
  const auto encoder = tokenizer.encoder();
  const auto after = [&](std::size_t at) { return at + core::replaced_length(text.substr(at)); };
  // Returns the text of the tokens of characters between two letters.
  const auto form = [&](std::size_t from, std::size_t end) {
    const std::string characters(text.substr(from, end - from));
    const auto [found, is_new] = forms.try_emplace(characters, characters);
    if (!is_new) return found->second;
    std::vector<std::uint32_t> ids;
    encoder->encode("a" + characters + "a", ids);
    const auto between = tokenizer.decode(ids);
    if (between.size() > 1 && between.front() == 'a' && between.back() == 'a')
      found->second = between.substr(1, between.size() - 2);
    return found->second;
  };
  NormalForm made;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = after(at);
    auto changed = form(at, end);
    for (int n = 1; n < kMost && end < text.size(); ++n) {
      const auto more = form(at, after(end));
      if (more == changed + form(end, after(end))) break;
      changed = more, end = after(end);
    }
    made.text += changed;
    made.from.resize(made.text.size(), at);
  }
  made.from.push_back(text.size());
  return made;
}

// Returns where a piece of a text begins, and moves `end` from the last piece's end to its own.
// Spaces that a tokenizer adds and unknown characters make pieces differ from the text, so a piece
// that is not at `end` is looked for a little behind it.
std::size_t find_piece(std::string_view text, std::string_view piece, std::size_t& end) {
  constexpr std::size_t kNear = 64;
  const auto found = text.substr(0, end + piece.size() + kNear).find(piece, end);
  if (found == text.npos) return end;
  end = found + piece.size();
  return found;
}

}  // namespace

MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked) {
  MemoryOptions memory = started;
  memory.chosen.clear();
  const auto fields = core::list_fields(memory).all();
  const Json json = core::parse_json(asked, "memory");
  std::vector<std::pair<const core::Field*, std::string>> given;
  for (const auto& [name, value] : json.items()) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    const auto* const field = core::find_by(fields, key, &core::Field::key);
    if (field == nullptr || key == "tuned_on")
      core::bad_usage("{}: is not an option of a memory", name.substr(0, 40));
    memory.chosen.insert(field->name);
    given.emplace_back(field, name);
    // Before the values are taken, because the request may give an option of what it leaves out.
    if (const auto* const kind = kind_of(*field); kind != nullptr && names_files(*field))
      kind->drop(memory);
  }
  for (const auto& [field, name] : given) take(*field, name, json[name]);
  return memory;
}

OpenJob::OpenJob(serve::JobPtr job, text::TokenizerPtr tokenizer)
    : job_(std::move(job)), tokenizer_(std::move(tokenizer)) {
  texts_.resize(request().prompts.size() * static_cast<std::size_t>(request().n));
  left_ = request().max_tokens > 0 ? std::ssize(texts_) : 0;
  for (const auto& prompt : request().prompts) usage_.prompt += std::ssize(prompt.tokens);
  for (std::size_t i = 0; request().stream && request().echo && i < texts_.size(); ++i) {
    Event event{Event::Kind::piece};
    event.choice.index = static_cast<std::int64_t>(i);
    event.choice.text = prompt_of(i).text;
    job_->send(std::move(event));
  }
}

// Returns whether each event of a stream has the log-probabilities of its tokens, as the model that
// writes them computes them. With `echo`, the last event has those of all tokens.
bool OpenJob::streams_tokens() const {
  return request().stream && request().logprobs && !request().echo && request().max_tokens > 0;
}

OpenJob::Text& OpenJob::text(std::size_t prompt, std::int64_t sample) {
  return texts_[prompt * static_cast<std::size_t>(request().n) + static_cast<std::size_t>(sample)];
}

const serve::CompletionPrompt& OpenJob::prompt_of(std::size_t text) const {
  return request().prompts[text / static_cast<std::size_t>(request().n)];
}

Arrival OpenJob::arrival(std::size_t number) const {
  const auto& asked = request();
  Prompt prompt;
  prompt.origin = "prompt";
  prompt.tokens = asked.prompts[number].tokens;
  prompt.max_tokens = asked.max_tokens;
  prompt.stop = asked.stop;
  prompt.temperature = asked.temperature;
  prompt.seed = asked.seed;
  LogitRules rules{asked.allowed, asked.biases, asked.repetition_penalty, asked.frequency_penalty,
      asked.presence_penalty};
  return {std::move(prompt), asked.n, DrawOptions{asked.temperature, asked.top_k, asked.top_p},
      std::make_shared<const LogitRules>(std::move(rules)),
      streams_tokens() ? *asked.logprobs : -1};
}

void OpenJob::piece(std::size_t prompt, std::int64_t sample, std::string_view piece) {
  if (!request().stream) return;
  auto& to = text(prompt, sample);
  Event event{Event::Kind::piece};
  event.choice.index = index_of(to);
  event.choice.text = piece;
  if (streams_tokens()) event.choice.tokens = told_tokens(to, piece);
  job_->send(std::move(event));
}

void OpenJob::tokens(std::size_t prompt, std::int64_t sample, std::span<const GrownToken> tokens) {
  auto& to = text(prompt, sample);
  for (const auto& token : tokens) {
    auto& one = to.tokens.emplace_back();
    one.text = text_of(token.token), one.log_prob = token.log_prob;
    for (const auto& [id, log_prob] : token.likely) one.likely.emplace_back(text_of(id), log_prob);
    to.begins.push_back(token.begin);
  }
}

void OpenJob::finished(std::size_t prompt, const Sample& sample) {
  auto& to = text(prompt, sample.sample);
  to.sample = sample, to.finished = true;
  usage_.completion += std::ssize(sample.tokens);
  if (sample.sample == 0) usage_.reused += sample.reused;
  --left_;
}

// Returns the tokens of a piece of a stream, and adds the piece to what was sent.
std::vector<serve::CompletionToken> OpenJob::told_tokens(Text& text, std::string_view piece) {
  text.sent += piece;
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    text.tokens[i].offset = text.characters.before(text.sent, text.begins[i]);
  text.begins.clear();
  return std::exchange(text.tokens, {});
}

std::string OpenJob::text_of(std::int64_t token) const {
  const auto id = static_cast<std::uint32_t>(token);
  return tokenizer_->decode({&id, 1}, false);
}

// Returns the tokens of a prompt and of the visible part of its text: without the end token and
// without tokens of a stop string.
std::vector<std::int64_t> OpenJob::tokens_of(std::size_t text) const {
  auto all = prompt_of(text).tokens;
  if (!texts_[text].finished) return all;
  const auto& sample = texts_[text].sample;
  auto shown = sample.tokens;
  if (sample.finish == Finish::end) shown.pop_back();
  if (sample.finish == Finish::stop) {
    std::size_t bytes = 0, n = 0;
    while (n < shown.size() && bytes < sample.text.size()) bytes += text_of(shown[n++]).size();
    shown.resize(n);
  }
  all.insert(all.end(), shown.begin(), shown.end());
  return all;
}

std::vector<std::vector<std::int64_t>> OpenJob::to_score() const {
  std::vector<std::vector<std::int64_t>> all;
  for (std::size_t i = 0; wants_scores() && i < texts_.size(); ++i) all.push_back(tokens_of(i));
  return all;
}

// Returns the byte at which each token of a choice begins in its text, which has the prompt if the
// request echoes it.
std::vector<std::size_t> OpenJob::begins_of(
    std::size_t text, const std::vector<std::int64_t>& all) const {
  const auto& prompt = prompt_of(text);
  const std::vector<std::uint32_t> sent(prompt.tokens.begin() + prompt.before, prompt.tokens.end());
  const bool changed = tokenizer_->decode(sent) != prompt.text;
  const auto normal = changed ? normal_form(prompt.text, *tokenizer_) : NormalForm();
  text::StreamDecoder decoder(tokenizer_);
  const std::string_view whole = changed ? normal.text : prompt.text;
  std::vector<std::size_t> begins;
  std::size_t end = 0, generated = prompt.text.size();
  for (std::int64_t at = 0; at < std::ssize(all); ++at) {
    std::string piece;
    decoder.push(static_cast<std::uint32_t>(all[static_cast<std::size_t>(at)]), piece);
    auto& begin = begins.emplace_back(0);
    if (at >= std::ssize(prompt.tokens)) begin = std::exchange(generated, generated + piece.size());
    else if (at >= prompt.before) begin = find_piece(whole, piece, end);
    if (changed && at < std::ssize(prompt.tokens)) begin = normal.from[begin];
  }
  return begins;
}

// Returns the tokens of a choice, whose text is `sent`. The first token of all has no score, and
// the scores begin after it.
std::vector<serve::CompletionToken> OpenJob::scored_tokens(
    std::size_t text, const TokenScores& scores, std::string_view sent) const {
  const auto all = tokens_of(text);
  const auto begins = begins_of(text, all);
  const auto& prompt = prompt_of(text);
  const auto likely = static_cast<std::size_t>(*request().logprobs);
  serve::CharacterCount characters;
  std::vector<serve::CompletionToken> made;
  for (auto at = request().echo ? static_cast<std::size_t>(prompt.before) : prompt.tokens.size();
       at < all.size(); ++at) {
    auto& one = made.emplace_back();
    one.text = text_of(all[at]);
    one.offset = characters.before(sent, begins[at]);
    if (at == 0) continue;
    one.log_prob = scores.log_prob[at - 1];
    const auto& tokens = scores.details[at - 1].likely;
    for (std::size_t n = 0; n < std::min(likely, tokens.size()); ++n) {
      const auto& [token, probability] = tokens[n];
      // The token's own number, to the bit: clients compare the two to see whether it is the best.
      const auto log_prob = token == all[at] ? *one.log_prob : std::log(probability);
      one.likely.emplace_back(text_of(token), log_prob);
    }
  }
  return made;
}

void OpenJob::send(std::span<const TokenScores> scores, bool cite) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    auto& text = texts_[i];
    Event event{Event::Kind::choice};
    auto& choice = event.choice;
    choice.index = static_cast<std::int64_t>(i);
    choice.text = prompt_of(i).text + text.sample.text;
    choice.finish = text.finished && text.sample.finish != Finish::length ? "stop" : "length";
    if (text.finished && cite) choice.extra["citations"] = to_json(text.sample.cited);
    if (text.finished && !request().retrieved.is_null())
      choice.extra["retrieved"] = request().retrieved;
    if (!text.sample.given.empty()) choice.extra["memories"] = memories_json(text.sample);
    if (wants_scores()) choice.tokens = scored_tokens(i, scores[i], choice.text);
    else if (streams_tokens()) choice.tokens = told_tokens(text, "");
    job_->send(std::move(event));
  }
  Event event{Event::Kind::done};
  event.usage = usage_;
  job_->send(std::move(event));
}

}  // namespace infer
