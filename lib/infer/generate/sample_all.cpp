#include "infer/generate/sample_all.h"

#include <fmt/format.h>

#include <chrono>

namespace infer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kReadAhead = 16;  // batches of sources

struct TurnStopped {};

}  // namespace

std::string SampledTotals::summary() const {
  auto text = fmt::format("{} texts, {} decoding steps, {:.1f} per second, {:.4f} s", texts, steps,
                          static_cast<double>(steps) / seconds, seconds);
  if (searches.made + searches.followed + searches.skipped > 0)
    text += fmt::format("; {} searches, {} followed, {} skipped", searches.made, searches.followed,
                        searches.skipped);
  if (spans > 0) text += fmt::format("; {} spans, {} tokens copied from them", spans, taken);
  return text;
}

core::OrderedJson SampledTotals::figures() const {
  const auto per = [](auto n, auto of) {
    return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 0;
  };
  return {
      {"texts", texts},
      {"tokens", steps},
      {"seconds", seconds},
      {"tokens_per_s", per(steps, seconds)},
      {"searches",
       {{"made", searches.made}, {"followed", searches.followed}, {"skipped", searches.skipped}}},
      {"spans", {{"proposed", spans}, {"tokens", taken}, {"tokens_per_span", per(taken, spans)}}}};
}

SampledTotals sample_all(Generator& generator, PromptReader& prompts, SampleOutput& output,
                         const SampleCallbacks& watch) {
  SampledTotals totals;
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
    totals.spans += sample.spans.size();
    for (const auto& span : sample.spans) totals.taken += static_cast<std::uint64_t>(span.taken);
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
    watch.warn(fmt::format("--samples {}: beam search found only {} of {} texts", options.samples,
                           found, wanted));
  if (watch.warn && !generator.special_note().empty()) watch.warn(generator.special_note());
  const auto note = generator.long_prompts_note();
  if (watch.warn && !note.empty()) watch.warn(note);
  totals.searches = generator.searches();
  return totals;
}

}  // namespace infer
