#include "infer/generate/generator.h"

#include "infer/loops/make_engine.h"
#include "model/tokenizer_file.h"

namespace infer {
namespace {

constexpr std::int64_t kTokensByDefault = 256;
constexpr std::int64_t kBoundless = std::int64_t{1} << 30;  // a window that never fills

}  // namespace

Generator::Generator(model::Loaded loaded, GeneratorOptions options, const MemoryOptions& memory,
    torch::Device device, bool record, std::shared_ptr<OpenMemories> open)
    : loaded_(std::move(loaded)), options_(std::move(options)), device_(device),
      open_(std::move(open)), record_(record) {
  options_.weights = type_loaded(options_.weights, loaded_);
  options_.check();
  check_translation();
  read_tokenizer();
  logits_ = std::make_shared<const LogitRules>(options_.logits.rules());
  logits_->check(static_cast<std::int64_t>(tokenizer_->size()), /*flags=*/true);
  WindowOptions windows;
  windows.window = options_.window;
  if (options_.translation.source) {
    const auto context = loaded_.model->architecture->context();
    sources_.emplace(options_.translation, tokenizer_, context, loaded_.folder);
    if (windows.window == 0) windows.window = context.value_or(kBoundless);
  }
  if (open_ == nullptr) {
    open_ = std::make_shared<OpenMemories>();
    open_->models = open_models(memory, loaded_, options_.reach, windows, device);
  }
  windows_ = plan_windows(windows, *loaded_.model, loaded_.facts);
  window_ = windows_.window;
  window_note_ = long_window_note(windows_, loaded_.folder);
  retrieve_ = plan_retrieval(options_.retrieve, window_, loaded_);
  options_.dynamic.check(sources_ || retrieve_.any(), options_.weights);
  start_engine();
  remember_by(memory);
}

void Generator::start_engine() {
  engine_ = make_engine(
      *loaded_.model, device_, parse_precision(options_.weights), record_, packed_in(loaded_));
  if (options_.keys == "float16" && !engine_->halve_keys())
    core::bad_usage("--kv-dtype float16: not supported for this {}{}; leave it out",
        loaded_.model->options.arch, device_.is_cpu() ? "" : " on a device");
}

// Trains the weights of the file on a prompt.
void Generator::learn_from(const std::vector<std::int64_t>& prompt) {
  learner_.emplace(*loaded_.model, options_.dynamic);  // the one before it restores the weights
  const std::int64_t block = std::min(options_.dynamic.block, window_),
                     last = std::ssize(prompt) - 1;
  for (std::int64_t from = 0; from < last; from += block) {
    const auto end = std::min(from + block, last), begin = std::max<std::int64_t>(0, end - window_);
    const Span span{.target = static_cast<std::uint64_t>(begin) + 1,
        .length = end - begin,
        .first_scored = from - begin,
        .stream = 0,
        .number = begin == 0 ? 0 : from / block,
        .fresh = begin == 0};
    learn_window(*learner_, *loaded_.model, prompt, span, windows_.window_token);
  }
  session_.reset();
  start_engine();
  remember_by(MemoryOptions(asked_));
}

void Generator::remember_by(const MemoryOptions& memory) {
  auto asked = asked_ = memory;
  asked.answers = true;
  const MemoryPlan memories = open_->plan(asked, windows_, loaded_);
  check_memories(memories);
  stores_ = memories.search().where;
  memories_ = memories.given_names();
  citer_.reset();
  const bool first = !session_;  // later memories may have nothing to cite
  if (options_.cite && (first || memories.has(&KindFacts::cites)))
    citer_.emplace(memories, tokenizer_, options_.cite_k);
  session_.emplace(*engine_, *loaded_.model, window_, memories, device_,
      parse_precision(options_.weights), retrieve_, record_);
  session_->keep(options_.kept);
  refilled_.reset();
}

Generator::~Generator() = default;

// Checks that the model is an encoder-decoder if and only if the task is translation.
void Generator::check_translation() const {
  const bool reads = nn::arch_facts(loaded_.model->options.arch).reads_source;
  if (reads && !options_.translation.source)
    core::bad_usage("{}: is an encoder-decoder; give --source", loaded_.folder);
  if (!reads && options_.translation.source)
    core::bad_usage("--source: {} is not an encoder-decoder; leave it out", loaded_.folder);
  if (reads && options_.begin != "auto")
    core::bad_usage(
        "--bos: cannot be combined with --source; a translation starts with the token of its "
        "pairs");
  if (reads && options_.retrieve.any())
    core::bad_usage("--retrieve: cannot be combined with --source");
}

// Reads the tokenizer, the beginning of prompts and the tokens that end a text.
void Generator::read_tokenizer() {
  tokenizer_ = tokenizer_of(loaded_, "encode prompts");
  end_ = tokenizer_->end_of_document();
  if (end_) ends_.insert(*end_);
  for (const auto id : model::end_tokens(loaded_.folder, loaded_.config)) ends_.insert(id);
  const auto begin = batch::chosen_beginning(options_.begin, tokenizer_.get(), loaded_.folder);
  if (begin.value_or(-1) >= 0) begin_ = {*begin};
}

// Checks that there are stores for spans, and that no memory is combined with several passages.
void Generator::check_memories(const MemoryPlan& memories) const {
  const auto search = memories.search();
  if (options_.spans.longest > 0 && search.where == nullptr)
    core::bad_usage("--copy-spans: requires --datastore");
  if (options_.spans.longest > 0) search.where->expect_followable();
  if (memories.gates.any()) memories.gates.expect_fitted();
  if (retrieve_.mix > 1 && memories.any())
    core::bad_usage(
        "--retrieve-mix {}: cannot be combined with memories, datastores, n-grams or further "
        "models; leave them out and give --memory none",
        retrieve_.mix);
}

std::span<const float> Generator::row_of(const torch::Tensor& rows, std::int64_t row) const {
  return {rows.const_data_ptr<float>() + row * rows.size(1), tokenizer_->size()};
}

std::vector<std::int64_t> Generator::encode(const Prompt& prompt) {
  if (prompt.tokens && !prompt.tokens->empty()) {
    for (const auto id : *prompt.tokens)
      if (id < 0 || id >= static_cast<std::int64_t>(tokenizer_->size()))
        core::bad_data("{}: {} is not a token id; the tokenizer has {} tokens", prompt.origin, id,
            tokenizer_->size());
    return *prompt.tokens;
  }
  const bool special = prompt.whole || prompt.special.value_or(options_.special);
  if (special && !parsing_special_) parsing_special_ = tokenizer_->parsing_special();
  if (!special && special_note_.empty()) {
    if (!special_text_) special_text_.emplace(*tokenizer_);
    if (const auto found = special_text_->find(prompt.text); !found.empty())
      special_note_ = text::SpecialText::note(prompt.origin, found);
  }
  const auto ids = (special ? parsing_special_ : tokenizer_)->encode(prompt.text);
  std::vector<std::int64_t> tokens;
  if (!prompt.whole) tokens = begin_;
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  if (!tokens.empty()) return tokens;
  if (end_) return {*end_};
  const auto newline = tokenizer_->encode("\n");
  if (newline.size() != 1)
    core::bad_usage("an empty prompt: the tokenizer has no BOS token; give text");
  return {newline[0]};
}

std::string Generator::engine_error(const Prompt& prompt) {
  constexpr std::size_t kMostTokens = 64;
  auto exact = loaded_.model;
  if (packed_in(loaded_) != nullptr ||
      exact->head->weights().at(0).scalar_type() != torch::kFloat32)
    exact = model::load(loaded_.folder, device_, torch::kFloat32, loaded_.adapter).model;
  ModuleEngine reference(*exact, device_);
  auto tokens = encode(prompt);
  tokens.resize(std::min(tokens.size(), kMostTokens));
  const auto error = compare(reference, *engine_, tokens);
  return fmt::format(
      "--dtype {}: log-probabilities differ from float32 by {:.2g} (rms), {:.2g} (max) over "
      "{} tokens; the same best token in {:.0f} %",
      options_.weights, error.rms, error.max, tokens.size(), 100 * error.same_best);
}

// Sets the options of a start: the prompt's own, else the general ones.
void Generator::set_own(Start& start, const Prompt& prompt) const {
  const auto refuse = [&](const char* member, const char* why) {
    core::bad_data("{}: {}: {}; leave it out", prompt.origin, member, why);
  };
  if (prompt.max_tokens && sources_)
    refuse("max_tokens", "the length of a translation is bounded by its source");
  if (prompt.temperature && options_.searches())
    refuse("temperature", "beam search does not sample");
  if (prompt.seed && options_.searches()) refuse("seed", "beam search does not sample");
  if (prompt.max_tokens) start.most = *prompt.max_tokens;
  start.stop = prompt.stop.value_or(options_.stop);
  if (sources_) start.stop.emplace_back("\n");
  start.draw = options_.draw;
  start.logits = logits_;
  start.draw.temperature =
      prompt.temperature.value_or(options_.draw.temperature < 0 ? 1 : options_.draw.temperature);
  start.seed = prompt.seed.value_or(options_.seed);
  start.stream = prompt.seed ? 0 : start.number << 32;
}

// Returns the starts in the order of decoding.
std::vector<Start> Generator::starts_of(
    const std::vector<Prompt>& prompts, const GeneratorCallbacks& watch) {
  std::vector<Start> starts;
  for (const auto& prompt : prompts) {
    const auto number = prompts_++;
    if (sources_ && prompt.text.empty()) {
      for (std::int64_t i = 0; watch.finished && i < options_.samples; ++i)
        watch.finished({number, i, {}, {}, 0, Finish::end, {}});
      continue;
    }
    starts.push_back(sources_
                         ? sources_->read(number, prompt.text, watch.warn)
                         : Start{number, encode(prompt), {},
                               options_.max_tokens > 0 ? options_.max_tokens : kTokensByDefault});
    set_own(starts.back(), prompt);
    const auto length = std::ssize(starts.back().tokens);
    const auto forgotten = session_->forgotten_of(length);
    cut_.add(length, forgotten);
  }
  if (sources_)
    std::ranges::stable_sort(starts, {}, [](const Start& start) { return start.source.size(); });
  return starts;
}

// Returns a decoder for the text after the start. A translation has no text before it.
text::StreamDecoder Generator::decoder_after(const Start& start) const {
  text::StreamDecoder decoder(tokenizer_);
  std::string before;
  if (sources_) return decoder;
  for (const auto id : start.tokens) decoder.push(static_cast<std::uint32_t>(id), before);
  return decoder;
}

void Generator::open_rows(const std::vector<Start>& starts) {
  std::vector<std::vector<std::int64_t>> prompts, sources;
  for (const auto& start : starts) {
    prompts.push_back(start.tokens);
    if (sources_) sources.push_back(start.source);
  }
  session_->start(prompts, sources);
}

void Generator::count(std::size_t tokens, const GeneratorCallbacks& watch) {
  tokens_ += tokens;
  if (watch.progress) watch.progress(tokens_);
}

// Adds a token to a text. Returns why the token ends the text, or nothing if it does not.
std::optional<Finish> Generator::ends(
    StopText& text, text::StreamDecoder& decoder, std::int64_t token) const {
  const auto id = static_cast<std::uint32_t>(token);
  if (ends_.contains(token) && !options_.ignore_end) return Finish::end;
  std::string piece;
  decoder.push(id, piece);
  if (text.push(piece)) return Finish::stop;
  return std::nullopt;
}

void Generator::note_passages(std::int64_t row, Sample& sample) const {
  const PrefixedRows* const prefixed = session_->prefixed();
  if (prefixed == nullptr || !prefixed->anew()) return;
  sample.retrieved.push_back({{"token", sample.tokens.size()},
      {"passages", to_json(prefixed->prefixes(row), prefixed->index())}});
}

void Generator::note_memories(
    const std::vector<NextToken>& next, std::vector<Growing>& texts) const {
  if (memories_.empty() || !session_->memory().any()) return;
  std::vector<std::int64_t> tokens;
  std::vector<double> log_probs;
  for (const auto& token : next) tokens.push_back(token.token), log_probs.push_back(token.log_prob);
  const auto shares = session_->memory().source_shares(
      torch::tensor(tokens, torch::kInt64), torch::tensor(log_probs, torch::kFloat64));
  const auto of = shares.accessor<double, 2>();
  const auto first = shares.size(1) - std::ssize(memories_);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto& given = texts[i].sample.given;
    for (std::size_t j = given.size(); j < memories_.size(); ++j)
      given.emplace_back(memories_[j], 0);
    for (std::size_t j = 0; j < given.size(); ++j)
      given[j].second += of[static_cast<std::int64_t>(i)][first + static_cast<std::int64_t>(j)];
  }
}

core::OrderedJson memories_json(const Sample& sample) {
  core::OrderedJson json;
  for (const auto& [memory, tokens] : sample.given)
    json[memory] = tokens / static_cast<double>(sample.tokens.size());
  return json;
}

void Generator::run(const std::vector<Prompt>& prompts, const GeneratorCallbacks& watch) {
  const auto each = options_.searches() ? options_.beam : options_.samples;  // rows per prompt
  const auto together = static_cast<std::size_t>(std::max<std::int64_t>(1, options_.batch / each));
  std::vector<Start> batch;
  const auto flush = [&] {
    if (batch.empty()) return;
    if (options_.searches()) {
      search(batch, watch);
    } else {
      for (std::int64_t first = 0; first < options_.samples; first += options_.batch)
        draw(batch, first, std::min(options_.samples, first + options_.batch), watch);
    }
    batch.clear();
  };
  for (auto& start : starts_of(prompts, watch)) {
    if (options_.dynamic.on) learn_from(start.tokens);
    batch.push_back(std::move(start));
    const bool alone = options_.dynamic.on || session_->alone(batch.back().tokens.size());
    if (alone && batch.size() > 1) {
      auto last = std::move(batch.back());
      batch.pop_back();
      flush();
      batch.push_back(std::move(last));
    }
    if (alone || batch.size() == together) flush();
  }
  flush();
}

// Draws samples [first, last) of each prompt.
void Generator::draw(const std::vector<Start>& starts, std::int64_t first, std::int64_t last,
    const GeneratorCallbacks& watch) {
  std::vector<Growing> texts;
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < starts.size(); ++row) {
    const auto& start = starts[row];
    const auto decoder = decoder_after(start);
    for (auto i = first; i < last; ++i) {
      texts.push_back(growing(start, i, decoder));
      rows.push_back(static_cast<std::int64_t>(row));
    }
  }
  open_rows(starts);
  session_->select(rows);
  Draw draw(options_.draw);
  while (!texts.empty()) step(texts, draw, watch);
}

// Appends a token to each text. Texts that end leave the list and the session.
void Generator::step(std::vector<Growing>& texts, Draw& draw, const GeneratorCallbacks& watch) {
  const auto drawn = next_tokens(texts, draw);
  std::vector<std::int64_t> tokens, going_on;
  std::vector<std::vector<std::int64_t>> guesses;
  std::vector<Growing> rest;
  count(texts.size(), watch);
  note_memories(drawn, texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto& text = texts[i];
    const auto row = static_cast<std::int64_t>(i);
    const auto next = grow(text, row, drawn[i], watch);
    if (!next) continue;
    tokens.push_back(*next);
    const auto ahead = std::min(text.trust, std::ssize(text.span));
    guesses.emplace_back(text.span.begin(), text.span.begin() + ahead);
    going_on.push_back(row);
    rest.push_back(std::move(text));
  }
  texts = std::move(rest);
  session_->select(going_on);
  if (!texts.empty()) session_->advance(tokens, guesses);
}

// Returns the text of a sample before its first token.
Generator::Growing Generator::growing(
    const Start& start, std::int64_t sample, const text::StreamDecoder& decoder) const {
  Growing text{core::Rng(start.seed, start.stream + static_cast<std::uint64_t>(sample)),
      StopText(start.stop), decoder, {}, start.most, start.draw,
      ChangedLogits(start.logits, start.tokens), start.likely};
  text.sample.prompt = start.number;
  text.sample.sample = sample;
  return text;
}

// Returns the next token of each row: the span's next token, or a sampled one. Spans, changed
// logits and the most probable tokens need whole rows on the host.
std::vector<Generator::NextToken> Generator::next_tokens(std::vector<Growing>& texts, Draw& draw) {
  const torch::Tensor there = session_->log_probs_there();
  const bool whole = std::ranges::any_of(
      texts, [](const auto& text) { return text.logits.any() || text.likely >= 0; });
  if (!there.is_cpu() && options_.spans.longest == 0 && !whole) return drawn_there(texts, there);
  std::vector<NextToken> tokens;
  const torch::Tensor rows = there.cpu();
  torch::Tensor log_z;
  if (std::ranges::any_of(texts, [](const auto& text) { return text.logits.needs_normaliser(); }))
    log_z = session_->log_normalisers();
  std::vector<float> changed;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto& text = texts[i];
    const auto log_p = row_of(rows, static_cast<std::int64_t>(i));
    auto by = log_p;
    if (text.logits.any()) {
      changed.assign(log_p.begin(), log_p.end());
      text.logits.apply(changed, log_z.defined() ? log_z.const_data_ptr<float>()[i] : 0);
      by = changed;
    }
    const bool spanned = !text.span.empty() && agrees(options_.spans, by, text.span.front());
    const auto token = spanned ? text.span.front() : draw.by(text.draw)(by, text.rng);
    const auto log_prob = [&](std::int64_t id) {
      return static_cast<double>(log_p[static_cast<std::size_t>(id)]);
    };
    auto& next = tokens.emplace_back(NextToken{{token, log_prob(token)}, spanned});
    if (text.likely <= 0) continue;
    for (const auto id : best_tokens(log_p, text.likely))
      next.likely.emplace_back(id, log_prob(id));
  }
  return tokens;
}

// Samples on the device, in one call for the texts that have the same options but the temperature.
std::vector<Generator::NextToken> Generator::drawn_there(
    std::vector<Growing>& texts, const torch::Tensor& log_probs) const {
  const auto log_p = log_probs.narrow(1, 0, static_cast<std::int64_t>(tokenizer_->size()));
  std::map<std::pair<std::int64_t, double>, std::vector<std::int64_t>> groups;
  for (std::size_t i = 0; i < texts.size(); ++i)
    groups[{texts[i].draw.top_k, texts[i].draw.top_p}].push_back(static_cast<std::int64_t>(i));
  std::vector<NextToken> tokens(texts.size());
  for (const auto& [_, rows] : groups) {
    std::vector<RowDraw> by;
    for (const auto row : rows) {
      auto& text = texts[static_cast<std::size_t>(row)];
      const auto temperature = text.draw.temperature;
      by.push_back({temperature, temperature > 0 ? text.rng.uniform() : 0});
    }
    const auto index = nn::upload(torch::tensor(rows, torch::kInt64), log_p.device());
    const auto drawn = draw_there(texts[static_cast<std::size_t>(rows[0])].draw,
        groups.size() == 1 ? log_p : log_p.index_select(0, index), by);
    for (std::size_t i = 0; i < rows.size(); ++i)
      tokens[static_cast<std::size_t>(rows[i])] = {drawn[i]};
  }
  return tokens;
}

// Appends a token to the text of a row. Returns nothing if it ends the text.
std::optional<std::int64_t> Generator::grow(
    Growing& text, std::int64_t row, const NextToken& next, const GeneratorCallbacks& watch) {
  const auto [token, log_prob] = DrawnToken(next);
  auto& sample = text.sample;
  note_passages(row, sample);
  sample.tokens.push_back(token);
  sample.log_prob += log_prob;
  text.logits.add(token);
  if (text.likely >= 0)
    text.untold.push_back({token, log_prob, text.text.text().size(), next.likely});
  if (citer_) sample.cited.push_back(citer_->cite(session_->memory(), {row, token, log_prob}));
  if (next.spanned) {
    text.span.erase(text.span.begin());
    ++sample.spans.back().taken;
    text.trust = std::min(text.trust + 1, options_.spans.longest);
  } else if (options_.spans.longest > 0) {
    if (!text.span.empty()) text.trust = (text.trust + 1) / 2;
    propose(text, row, token, log_prob);
  }
  auto finish = ends(text.text, text.decoder, token);
  if (!finish && std::ssize(sample.tokens) == text.most) finish = Finish::length;
  const auto known = finish ? text.text.text().size() : text.text.settled();
  if (finish == Finish::end && text.likely >= 0) text.untold.pop_back();
  tell_tokens(text, known, finish.has_value(), watch);
  if (watch.piece && known > text.reported)
    watch.piece(sample.prompt, sample.sample,
        std::string_view(text.text.text()).substr(text.reported, known - text.reported));
  text.reported = std::max(text.reported, known);
  if (!finish) return token;
  sample.finish = *finish;
  sample.text = text.text.text();
  for (auto& span : sample.spans) {
    text::StreamDecoder decoder(tokenizer_);
    const auto from = sample.tokens.begin() + span.token;
    for (auto at = from; at != from + 1 + span.taken; ++at)
      decoder.push(static_cast<std::uint32_t>(*at), span.text);
  }
  if (watch.finished) watch.finished(sample);
  return std::nullopt;
}

// Reports the tokens that begin in the first `known` bytes of the text; at its end also those
// without a text, unless a stop string has removed them.
void Generator::tell_tokens(
    Growing& text, std::size_t known, bool ended, const GeneratorCallbacks& watch) const {
  auto& tokens = text.untold;
  const auto rest = std::ranges::find_if(tokens, [&](const auto& one) {
    return one.begin > known || (one.begin == known && (!ended || text.text.stopped()));
  });
  const auto n = static_cast<std::size_t>(rest - tokens.begin());
  if (n > 0 && watch.tokens)
    watch.tokens(text.sample.prompt, text.sample.sample, std::span(tokens).first(n));
  tokens.erase(tokens.begin(), rest);
}

// Finds the span that begins with a sampled token, if there is one.
void Generator::propose(Growing& text, std::int64_t row, std::int64_t token, double log_prob) {
  text.span.clear();
  auto& sample = text.sample;
  const auto shares = session_->memory().store_shares({row, token, log_prob});
  auto span = propose_span(options_.spans, *stores_, shares, text.most - std::ssize(sample.tokens));
  if (!span) return;
  text.span = std::move(span->rest);
  const auto& [store, place, share] = span->from;
  const auto& of = (*stores_)[static_cast<std::size_t>(store)];
  sample.spans.push_back({of.name(), of.context(place, 0).document, place, share,
      std::ssize(sample.tokens) - 1, std::ssize(text.span)});
}

}  // namespace infer
