#include "infer/answers/answerer.h"

#include "infer/score/report.h"
#include "model/adapter.h"
#include "model/tokenizer_file.h"

namespace infer {
namespace {

using task::ScoreRequest;

std::vector<std::int64_t> joined(
    const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

double log_sum_exp(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  if (std::isinf(most) || values.size() == 1) return most;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  return most + std::log(sum);
}

using namespace std::string_view_literals;

constexpr std::array kSpaces = {"\t"sv, "\n"sv, "\v"sv, "\f"sv, "\r"sv, "\x1c"sv, "\x1d"sv,
    "\x1e"sv, "\x1f"sv, " "sv, "\xc2\x85"sv, "\xc2\xa0"sv, "\xe1\x9a\x80"sv, "\xe2\x80\x80"sv,
    "\xe2\x80\x81"sv, "\xe2\x80\x82"sv, "\xe2\x80\x83"sv, "\xe2\x80\x84"sv, "\xe2\x80\x85"sv,
    "\xe2\x80\x86"sv, "\xe2\x80\x87"sv, "\xe2\x80\x88"sv, "\xe2\x80\x89"sv, "\xe2\x80\x8a"sv,
    "\xe2\x80\xa8"sv, "\xe2\x80\xa9"sv, "\xe2\x80\xaf"sv, "\xe2\x81\x9f"sv, "\xe3\x80\x80"sv};

std::vector<std::uint32_t> encode(text::Encoder& encoder, std::string_view text) {
  std::vector<std::uint32_t> ids;
  encoder.encode(text, ids);
  return ids;
}

// Returns the bytes of tokens inside a text, at most `most`. A normalizer may have made the tokens
// from other bytes.
std::int64_t bytes_of(
    const text::Tokenizer& tokenizer, const std::vector<std::uint32_t>& tokens, std::int64_t most) {
  return std::min(most, std::ssize(tokenizer.decode(tokens, false)));
}

}  // namespace

// The passages and results of a batch of requests.
struct Answerer::Batch {
  std::vector<Passage> passages;
  std::vector<std::vector<TokenScores>> scores;  // of each passage

  ScoredText scored(const Asked& asked) const {
    if (!asked.passage) return {asked.bytes, {}, {}};
    const auto [passage, continuation] = *asked.passage;
    return {
        asked.bytes, passages[passage].continuations[continuation], scores[passage][continuation]};
  }
};

void AnswererOptions::fields(core::FieldList& f) {
  auto& folder = f("model", model, "folder of the model");
  folder.short_name = 'm', folder.required = true;
  model::adapter_field(f, adapter);
  model::tokenizer_field(f, tokenizer);
  f("boundary", boundary,
      "beginning of a continuation: count: after as many tokens as its context has alone; prefix: "
      "at the first token that differs from those of the context",
      {"count", "prefix"});
  f("special", special, "parse the text of special tokens, such as <|im_start|>, as these tokens");
  f("chat", chat,
      "format the \"messages\" of a request by the model's chat template, up to the beginning "
      "of the answer");
  f("system", system, "--chat: system message before each conversation").needs("chat");
  const auto in_choices = f.group("Choices");
  f("domain-context", domain_context,
      "unconditional context: also compare choices by their gain over it (PMI)");
  f("verbalizers", verbalizers,
      "JSON file {choice: [text, ...]}: the probability of a choice is the sum over its texts");
  windows.fields(f, /*documents=*/false);
  windows.protocol_field(f, {"none", "lm-eval"});
  reach.fields(f);
  retrieve.fields(f);
  memory.fields(f);
  const auto in_citations = f.group("Citations");
  f("cite", cite, "print the stored contexts and n-grams that predicted each scored token");
  f("cite-k", cite_k, "cited contexts per token").between(1, 65536).needs("cite");
}

Answerer::Answerer(const AnswererOptions& options)
    : Answerer(
          options, load_with_type(options.model, nn::device(options.compute.device),
                       options.dynamic.weight_type(options.compute.precision), options.adapter)) {}

Answerer::Answerer(const AnswererOptions& options, model::Loaded loaded)
    : options_(options), device_(nn::device(options.compute.device)), loaded_(std::move(loaded)) {
  options_.compute.precision = type_loaded(options_.compute.precision, loaded_);
  if (nn::arch_facts(loaded_.model->options.arch).reads_source)
    core::bad_usage("{}: an encoder-decoder reads pairs; eval-ppl scores them", loaded_.folder);
  options_.retrieve.settle(options_.windows);
  if (options_.retrieve.any() && options_.retrieve.mix > 1)
    core::bad_usage(
        "--retrieve-mix {}: score prepends one passage; leave it out", options_.retrieve.mix);
  model::give_tokenizer(loaded_, options_.tokenizer);
  tokenizer_ = tokenizer_of(loaded_, "encode texts");
  encoder_ = tokenizer_->encoder();
  special_text_.emplace(*tokenizer_);
  if (options_.chat) chat_ = model::chat_of(loaded_.folder);
  const auto& windows = options_.windows;
  const auto chosen = batch::chosen_beginning(windows.begin, tokenizer_.get(), loaded_.folder);
  if (chosen.value_or(-1) >= 0) empty_ = begin_ = {*chosen};
  if (const auto end = tokenizer_->end_of_document(); !chosen && end) empty_ = {*end};
  const Protocol* const protocol = find_protocol(windows.protocol);
  if (protocol != nullptr && windows.begin == "auto" && empty_.empty())
    empty_ = {*open_beginning(protocol, tokenizer_.get(), loaded_.folder)};
  open_ = std::make_shared<OpenMemories>();
  open_->models = open_models(options_.memory, loaded_, options_.reach, windows, device_,
      nn::dtype(options_.compute.precision));
  auto asked = windows;
  if (options_.dynamic.on && asked.carry == "auto") asked.carry = "off";
  own_windows_ = plan_windows(asked, *loaded_.model, loaded_.facts);
  if (windows.bos_at == "window") {
    if (empty_.empty())
      core::bad_usage("--bos-at window: {} has no BOS token; give --bos", loaded_.folder);
    own_windows_.window_token = empty_[0];
  }
  options_.dynamic.check(
      options_.retrieve.any() || own_windows_.carried, options_.compute.precision);
  own_windows_.dynamic = options_.dynamic;
  windows_ = own_windows_;
  plan_retrieval(options_.retrieve, windows_.window, loaded_).put_into(windows_);
  if (!options_.verbalizers.empty()) read_verbalizers();
  loaded_.model->eval();
  engine_ = take_engine();
  memory_ = plan(options_.memory);
  if (options_.cite) citer_.emplace(memory_, tokenizer_, options_.cite_k);
  scorer_.emplace(*loaded_.model, *engine_, windows_, memory_,
      static_cast<std::int64_t>(tokenizer_->size()),
      TokenWants{citer_ ? &*citer_ : nullptr, options_.likely > 0, options_.likely});
}

MemoryPlan Answerer::plan(const MemoryOptions& memory) const {
  MemoryPlan planned = open_->plan(memory, own_windows_, loaded_);
  planned.expect_probabilities();
  if (planned.gates.any()) planned.gates.expect_fitted();
  return planned;
}

void Answerer::read_verbalizers() {
  const std::string& path = options_.verbalizers;
  const auto json = core::parse_json(core::read_text(path), path);
  if (!json.is_object()) core::bad_data("{}: not a JSON object", path);
  for (const auto& [choice, texts] : json.items()) {
    verbalizers_[choice] = core::get<std::vector<std::string>>(json, choice.c_str(), path);
    const auto& own = verbalizers_[choice];
    if (own.empty()) core::bad_data("{}: \"{}\" has an empty list of texts", path, choice);
    for (auto text = own.begin(); text != own.end(); ++text)
      if (text->empty() || std::find(own.begin(), text, *text) != text)
        core::bad_data("{}: \"{}\": takes non-empty, distinct texts", path, choice);
  }
}

std::string Answerer::signature(const core::Digest& requests) const {
  WindowPlan windows = windows_;
  if (!empty_.empty()) windows.beginning = empty_[0];
  if (options_.windows.begin != "auto")
    windows.begin =
        begin_.empty() ? "none" : tokenizer_->token(static_cast<std::uint32_t>(begin_[0]));
  std::string text = infer::signature(requests, loaded_.fingerprint, windows, memory_,
                         options_.compute.precision) +
                     options_.reach.signature();
  const auto add = [&](const char* name, const std::string& of) {
    text += fmt::format("|{}:{}", name, short_fingerprint(core::hash128(of)));
  };
  if (options_.special) text += "|special";
  if (chat_) add("chat", chat_->fingerprint().hex() + options_.system);
  if (memory_.online && !memory_.weights_follow) text += "|weights-follow:off";
  if (options_.boundary != "count") text += "|boundary:" + options_.boundary;
  if (!options_.domain_context.empty()) add("domain-context", options_.domain_context);
  if (!verbalizers_.empty()) add("verbalizers", core::Json(verbalizers_).dump());
  return text;
}

// Returns an engine that no one uses: the modules, whose products of many rows are faster, unless
// they lack the weights.
std::unique_ptr<Engine> Answerer::take_engine() {
  if (!idle_.empty()) {
    auto engine = std::move(idle_.back());
    idle_.pop_back();
    return engine;
  }
  const auto* const packed = packed_in(loaded_);
  if (packed == nullptr && !packs(options_.compute.precision))
    return std::make_unique<ModuleEngine>(*loaded_.model, device_);
  return make_engine(*loaded_.model, device_,
      packed != nullptr ? packed->precision() : parse_precision(options_.compute.precision),
      /*record=*/false, packed);
}

// Returns the bytes of a token that begins a text of `most` bytes.
std::int64_t Answerer::bytes_of_first(std::uint32_t token, std::int64_t most) const {
  return std::min(most, std::ssize(tokenizer_->decode({&token, 1})));
}

// Returns the encoder of a request: one that finds special tokens for a conversation or on request,
// else the plain one.
text::Encoder& Answerer::encoder_for(const ScoreRequest& request) {
  if (!request.messages && !request.special.value_or(options_.special)) return *encoder_;
  if (!special_encoder_) {
    parsing_special_ = tokenizer_->parsing_special();
    special_encoder_ = parsing_special_->encoder();
  }
  return *special_encoder_;
}

void Answerer::look_at(const std::string& text, const ScoreRequest& request) {
  if (request.messages || request.special.value_or(options_.special)) return;
  if (!special_note_.empty()) return;
  if (const auto found = special_text_->find(text); !found.empty())
    special_note_ = text::SpecialText::note(request.origin, found);
}

// If no token precedes the text, its first token is not predicted.
Answerer::Asked Answerer::ask_text(const ScoreRequest& request, Batch& batch) {
  const std::string& text = request.text;
  look_at(text, request);
  std::vector<std::uint32_t> ids;
  encoder_for(request).encode(text, ids);
  Passage passage;
  passage.text = true;
  passage.context = empty_;
  auto from = ids.begin();
  Asked asked{static_cast<std::int64_t>(text.size())};
  if (passage.context.empty() && !ids.empty()) {
    asked.bytes -= bytes_of_first(ids[0], asked.bytes);
    passage.context = {*from++};
  }
  if (from == ids.end()) return asked;
  passage.continuations.emplace_back(from, ids.end());
  asked.passage = {batch.passages.size(), 0};
  batch.passages.push_back(std::move(passage));
  return asked;
}

// Groups continuations whose contexts have equal tokens. The tokens differ only with an empty
// context.
std::vector<Answerer::Asked> Answerer::ask(const std::string& context,
    const std::vector<std::string>& continuations, const ScoreRequest& request, Batch& batch) {
  const std::string& origin = request.origin;
  look_at(context, request);
  std::vector<Asked> asked;
  const std::size_t first = batch.passages.size();
  const auto boundary = options_.boundary == "prefix" ? Boundary::prefix : Boundary::count;
  auto all = encode_jointly(*tokenizer_, encoder_for(request), context, continuations, boundary);
  for (std::size_t i = 0; i < continuations.size(); ++i) {
    auto& tokens = all[i];
    const auto which = [&] {
      return continuations.size() == 1 ? std::string() : fmt::format(" {}", i);
    };
    if (tokens.continuation.empty()) core::bad_data("{}: continuation{} is empty", origin, which());
    // A chat template already gives a beginning.
    auto before = tokens.context.empty() ? empty_
                  : request.messages     ? tokens.context
                                         : joined(begin_, tokens.context);
    if (before.empty()) {
      if (tokens.continuation.size() == 1)
        core::bad_data(
            "{}: continuation{} is one token without a context; give a context, or --bos", origin,
            which());
      before = {tokens.continuation[0]};
      tokens.bytes -= bytes_of_first(static_cast<std::uint32_t>(before[0]), tokens.bytes);
      tokens.continuation.erase(tokens.continuation.begin());
    }
    if (std::ssize(tokens.continuation) > scorer_->longest())
      core::bad_data("{}: continuation{} has {} tokens, more than the window of {}", origin,
          which(), tokens.continuation.size(), scorer_->longest());
    if (batch.passages.size() == first || batch.passages.back().context != before)
      batch.passages.emplace_back().context = std::move(before);
    auto& passage = batch.passages.back();
    asked.push_back({tokens.bytes, {{batch.passages.size() - 1, passage.continuations.size()}}});
    passage.continuations.push_back(std::move(tokens.continuation));
  }
  return asked;
}

std::vector<Answerer::AskedChoice> Answerer::ask(const ScoreRequest& request, Batch& batch) {
  if (!request.error.empty()) core::bad_data("{}", request.error);
  if (request.kind == ScoreRequest::Kind::text) return {{{ask_text(request, batch)}, {}}};
  if (windows_.dynamic.on)
    core::bad_data("{}: --dynamic-evaluation takes texts, without continuations", request.origin);
  std::string context = request.text;
  if (request.messages) {
    if (!chat_) core::bad_data("{}: messages: a conversation requires --chat", request.origin);
    context = chat_->prompt(
        text::parse_messages(*request.messages, request.origin), options_.system, request.origin);
  }
  std::vector<std::string> texts;  // of all choices, with the synonyms of each adjacent
  std::vector<std::size_t> counts;
  for (const auto& choice : request.continuations) {
    const auto known = verbalizers_.find(choice);
    const bool choices = request.kind == ScoreRequest::Kind::choices;
    const auto own = choices && known != verbalizers_.end() ? known->second : std::vector{choice};
    texts.insert(texts.end(), own.begin(), own.end());
    counts.push_back(own.size());
  }
  const auto asked = ask(context, texts, request, batch);
  std::vector<Asked> domain;
  ScoreRequest plain;
  plain.origin = request.origin, plain.special = request.special;
  if (request.kind == ScoreRequest::Kind::choices && !options_.domain_context.empty())
    domain = ask(options_.domain_context, texts, plain, batch);
  std::vector<AskedChoice> choices;
  std::size_t begin = 0;
  for (const auto count : counts) {
    const auto part = [&](const std::vector<Asked>& all) {
      return all.empty() ? all
                         : std::vector<Asked>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                               all.begin() + static_cast<std::ptrdiff_t>(begin + count));
    };
    choices.push_back({part(asked), part(domain)});
    begin += count;
  }
  return choices;
}

std::vector<TokenScores> Answerer::score_tokens(
    const std::vector<std::vector<std::int64_t>>& texts, const MemoryPlan& memory, Pace* pace) {
  std::vector<Passage> passages;
  for (const auto& tokens : texts) {
    if (tokens.size() < 2) continue;
    Passage passage;
    passage.text = true;
    passage.context = {tokens[0]};
    passage.continuations.emplace_back(tokens.begin() + 1, tokens.end());
    passages.push_back(std::move(passage));
  }
  // Its own, because other texts may be scored between two pieces.
  auto engine = take_engine();
  PassageScorer scorer(*loaded_.model, *engine, windows_, memory,
      static_cast<std::int64_t>(tokenizer_->size()),
      TokenWants{nullptr, options_.likely > 0, options_.likely});
  auto scored = scorer.score(passages, pace);
  engine->open(0);  // returns the memory of its rows
  idle_.push_back(std::move(engine));
  std::size_t passage = 0;
  return core::mapped(texts, [&](const auto& tokens) {
    return tokens.size() < 2 ? TokenScores() : std::move(scored[passage++][0]);
  });
}

std::vector<Answer> Answerer::answer(std::span<const ScoreRequest> requests) {
  Batch batch;
  std::vector<Answer> answers;
  std::vector<std::vector<AskedChoice>> asked;
  for (const auto& request : requests) {
    Answer& answer = answers.emplace_back();
    answer.id = request.id;
    answer.kind = request.kind;
    answer.gold = request.gold;
    auto& choices = asked.emplace_back();
    const std::size_t passages = batch.passages.size();
    try {
      choices = ask(request, batch);
    } catch (const core::Error& error) {
      if (error.code() != core::Code::bad_data) throw;
      answer.error = error.what();
      batch.passages.resize(passages);
    }
  }
  batch.scores = scorer_->score(batch.passages);
  for (std::size_t i = 0; i < answers.size(); ++i)
    for (const auto& choice : asked[i]) {
      ScoredChoice& made = answers[i].choices.emplace_back();
      const auto together = [&](const std::vector<Asked>& texts) {
        return core::mapped(
            texts, [&](const auto& text) { return batch.scored(text).scores.sum(); });
      };
      const auto sums = together(choice.texts);
      const auto likeliest = std::max_element(sums.begin(), sums.end()) - sums.begin();
      made.text = batch.scored(choice.texts[static_cast<std::size_t>(likeliest)]);
      made.log_prob = log_sum_exp(sums);
      if (!choice.domain.empty()) made.domain_log_prob = log_sum_exp(together(choice.domain));
    }
  return answers;
}

std::size_t trailing_space(const std::string& text) {
  std::string_view rest = text;
  for (;;) {
    const auto* const space = std::find_if(
        kSpaces.begin(), kSpaces.end(), [&](auto known) { return rest.ends_with(known); });
    if (space == kSpaces.end()) return text.size() - rest.size();
    rest.remove_suffix(space->size());
  }
}

std::vector<JointTokens> encode_jointly(const text::Tokenizer& tokenizer, text::Encoder& encoder,
    const std::string& context, const std::vector<std::string>& continuations, Boundary boundary) {
  const std::size_t kept = context.size() - trailing_space(context);
  const auto alone = encode(encoder, std::string_view(context).substr(0, kept));
  std::vector<std::vector<std::uint32_t>> wholes;
  auto end = alone.begin() + std::ssize(alone);  // of the tokens that all have in common
  for (const auto& continuation : continuations) {
    const auto& whole = wholes.emplace_back(encode(encoder, context + continuation));
    if (boundary == Boundary::prefix)
      end = std::mismatch(alone.begin(), end, whole.begin(), whole.end()).first;
  }
  const auto common = static_cast<std::size_t>(end - alone.begin());
  const std::vector<std::uint32_t> moved(end, alone.end());
  const auto more = static_cast<std::int64_t>(context.size() - kept) +
                    bytes_of(tokenizer, moved, static_cast<std::int64_t>(kept));
  std::vector<JointTokens> all;
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const auto& whole = wholes[i];
    const auto from = static_cast<std::ptrdiff_t>(std::min(common, whole.size()));
    all.push_back({{alone.begin(), end}, {whole.begin() + from, whole.end()},
        more + std::ssize(continuations[i])});
  }
  return all;
}

decltype(TurnModel::gains) question_gains(
    const model::Loaded& loaded, const nn::DeviceOptions& compute, const std::string& weights) {
  struct Scoring {
    std::mutex one;  // call at a time
    Answerer answerer;
  };
  AnswererOptions options;
  options.model = loaded.folder, options.compute.device = compute.device;
  if (packs(weights)) options.compute.precision = weights;
  const std::shared_ptr<Scoring> scoring(new Scoring{{}, Answerer(options, loaded)});
  return [scoring](const std::string& question, const std::vector<std::string>& passages) {
    constexpr std::size_t kMost = 256;
    const std::lock_guard lock(scoring->one);
    const auto& tokenizer = scoring->answerer.tokenizer();
    auto ids = tokenizer.encode(" " + question);
    ids.resize(std::min(ids.size(), kMost));
    const auto asked = tokenizer.decode(ids);
    std::vector<ScoreRequest> requests(passages.size() + 1);  // the last one without a passage
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].kind = ScoreRequest::Kind::continuation;
      requests[i].text = (i < passages.size() ? passages[i] : "") + "\nQuestion:";
      requests[i].continuations = {asked};
    }
    const auto answers = scoring->answerer.answer(requests);
    std::vector<double> gains;
    for (std::size_t i = 0; i < passages.size(); ++i) {
      if (!answers[i].error.empty() || !answers.back().error.empty()) return std::vector<double>();
      gains.push_back(answers[i].choices[0].log_prob - answers.back().choices[0].log_prob);
    }
    return gains;
  };
}

}  // namespace infer
