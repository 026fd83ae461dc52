#include "infer/generate/sample_all.h"

#include "core/json_line.h"
#include "core/plain_text.h"

namespace infer {
namespace {

std::string json_line(const Prompt& prompt, const Sample& sample) {
  core::OrderedJson json{{"prompt", prompt.text}, {"sample", sample.sample}, {"text", sample.text},
      {"tokens", sample.tokens}, {"log_prob", sample.log_prob}, {"finish", name_of(sample.finish)}};
  if (!sample.given.empty()) json["memories"] = memories_json(sample);
  if (!sample.cited.empty()) json["citations"] = to_json(sample.cited);
  if (auto spans = to_json(sample.spans); !spans.empty()) json["spans"] = std::move(spans);
  if (!sample.retrieved.empty()) json["retrieved"] = sample.retrieved;
  if (!prompt.passages.empty())
    json["retrieved"] =
        core::OrderedJson::array({core::OrderedJson{{"token", 0}, {"passages", prompt.passages}}});
  const std::string line = core::dump(json) + "\n";
  return prompt.id ? core::with_member("id", *prompt.id, line) : line;
}

using Clock = std::chrono::steady_clock;
constexpr std::size_t kReadAhead = 16;  // batches of sources

struct TurnStopped {};

template <class N, class Of> double ratio(N n, Of of) {
  return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 0;
}

}  // namespace

void OutputOptions::fields(core::FieldList& f) {
  f("echo", echo, "print each prompt before its continuation");
  f("separator", separator, "line printed between texts");
}

SampleOutput::SampleOutput(
    core::ByteSink& sink, OutputOptions options, std::int64_t samples, std::function<void()> flush)
    : sink_(sink), options_(std::move(options)), samples_(samples), flush_(std::move(flush)) {}

void SampleOutput::begin(std::vector<Prompt> prompts) {
  for (auto& prompt : prompts) prompts_[begun_++] = std::move(prompt);
}

void SampleOutput::open(const Key& key) {
  open_ = true;
  if (options_.json) return;
  if (any_ && !options_.separator.empty()) sink_.write(options_.separator + "\n");
  if (options_.echo) sink_.write(prompts_[key.first].text);
}

void SampleOutput::close() {
  if (!options_.json) sink_.write("\n");
  open_ = false, any_ = true;
  if (++next_.second == samples_) next_ = {next_.first + 1, 0};
}

void SampleOutput::piece(std::uint64_t prompt, std::int64_t sample, std::string_view piece) {
  if (options_.json) return;
  held_[{prompt, sample}].text += piece;
  pass_on();
}

void SampleOutput::finished(const Sample& sample) {
  auto& held = held_[{sample.prompt, sample.sample}];
  held.whole = true;
  if (options_.json) held.text = json_line(prompts_[sample.prompt], sample);
  pass_on();
}

// Writes the next samples as far as they are available.
void SampleOutput::pass_on() {
  bool wrote = false;
  for (auto at = held_.find(next_); at != held_.end(); at = held_.find(next_)) {
    if (!open_) open(next_);
    sink_.write(at->second.text);
    at->second.text.clear();
    wrote = true;
    if (!at->second.whole) break;
    held_.erase(at);
    close();
  }
  if (wrote && flush_) flush_();
}

void SampleOutput::cut() {
  held_.clear();
  if (open_) close();
  if (flush_) flush_();
}

void SampleOutput::end() {
  while (!held_.empty()) {  // a search may find fewer samples than requested
    next_ = held_.begin()->first;
    pass_on();
  }
  next_ = {begun_, 0};
  prompts_.clear();
}

std::string SampledTotals::summary() const {
  auto text = fmt::format("{} texts, {} decoding steps, {:.1f} per second, {:.4f} s", texts, steps,
      static_cast<double>(steps) / seconds, seconds);
  if (searches.made + searches.followed + searches.skipped > 0)
    text += fmt::format("; {} searches, {} followed, {} skipped", searches.made, searches.followed,
        searches.skipped);
  if (spans > 0) text += fmt::format("; {} spans, {} tokens copied from them", spans, taken);
  return text;
}

std::string SampledTotals::from_memories() const {
  std::string text, unused;
  const auto add = [](std::string& to, const char* between, const std::string& more) {
    to += (to.empty() ? "" : between) + more;
  };
  for (const auto& [memory, from_it] : given) {
    const double percent = 100 * ratio(from_it, tokens);
    add(text, ", ", fmt::format("{:.1f} % from {}", percent, core::printable(memory)));
    if (percent < 1) add(unused, ", ", core::printable(memory));
  }
  if (!text.empty()) text = fmt::format("of {} tokens, {}", tokens, text);
  if (turns > 0)
    add(text, "; ", fmt::format("passages were used for {} of {} turns", with_passages, turns));
  if (!unused.empty())
    text +=
        fmt::format("; less than 1 % is almost nothing: see tessera-memories(7) for {}", unused);
  return text;
}

core::OrderedJson SampledTotals::figures() const {
  core::OrderedJson figures = {{"texts", texts}, {"tokens", steps}, {"seconds", seconds},
      {"tokens_per_s", ratio(steps, seconds)},
      {"searches", {{"made", searches.made}, {"followed", searches.followed},
                       {"skipped", searches.skipped}}},
      {"spans",
          {{"proposed", spans}, {"tokens", taken}, {"tokens_per_span", ratio(taken, spans)}}}};
  for (const auto& [memory, from_it] : given) figures["memories"][memory] = ratio(from_it, tokens);
  return figures;
}

SampledTotals sample_all(Generator& generator, PromptReader& prompts, SampleOutput& output,
    const SampleCallbacks& watch) {
  SampledTotals totals;
  for (const auto& memory : generator.memories()) totals.given.emplace_back(memory, 0);
  GeneratorCallbacks inner;
  std::string said;  // text of the turn
  inner.piece = [&](auto prompt, auto sample, auto piece) {
    if (prompts.conversing()) said += piece;
    output.piece(prompt, sample, piece);
  };
  inner.finished = [&](const Sample& sample) {
    output.finished(sample);
    said = sample.text;
    if (watch.finished) watch.finished(sample);
    ++totals.texts;
    totals.tokens += sample.tokens.size();
    totals.spans += sample.spans.size();
    for (const auto& span : sample.spans) totals.taken += static_cast<std::uint64_t>(span.taken);
    for (std::size_t i = 0; i < sample.given.size(); ++i)
      totals.given[i].second += sample.given[i].second;
  };
  inner.warn = watch.warn;
  inner.progress = [&](std::uint64_t steps) {
    totals.steps = steps;
    if (prompts.conversing() && watch.stops && watch.stops()) throw TurnStopped{};
    if (watch.progress) watch.progress(steps);
  };
  if (watch.warn && !generator.window_note().empty()) watch.warn(generator.window_note());
  const auto& options = generator.options();
  const bool source = options.translation.source;
  std::uint64_t wanted = 0, found = 0;  // numbers of texts
  const auto most = static_cast<std::size_t>(options.batch) * (source ? kReadAhead : 1);
  for (auto batch = prompts.next(most); !batch.empty(); batch = prompts.next(most)) {
    if (watch.checked && totals.texts == 0 && !source)
      watch.checked(generator.engine_error(batch[0]));
    const auto start = Clock::now();
    for (const auto& prompt : batch) {
      totals.turns += prompt.passages.is_array() ? 1 : 0;
      totals.with_passages += prompt.passages.empty() ? 0 : 1;
    }
    output.begin(batch);
    const auto before = totals.texts;
    said.clear();
    if (watch.turn) watch.turn(true);
    try {
      generator.run(batch, inner);
    } catch (const TurnStopped&) {
      output.cut();
      ++totals.texts;
    }
    if (watch.turn) watch.turn(false);
    if (prompts.conversing()) prompts.answered(said);
    wanted += batch.size() * static_cast<std::uint64_t>(options.samples);
    found += totals.texts - before;
    output.end();
    totals.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (watch.warn && found < wanted)
    watch.warn(fmt::format(
        "--samples {}: beam search found only {} of {} texts", options.samples, found, wanted));
  if (watch.warn && !generator.special_note().empty()) watch.warn(generator.special_note());
  const auto note = generator.long_prompts_note();
  if (watch.warn && !note.empty()) watch.warn(note);
  if (options.searches() || totals.tokens == 0) totals.given.clear();  // not counted
  totals.searches = generator.searches();
  return totals;
}

}  // namespace infer
