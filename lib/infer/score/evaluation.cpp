#include "infer/score/evaluation.h"

#include "infer/loops/make_engine.h"
#include "model/adapter.h"

namespace infer {

void EvaluationOptions::fields(core::FieldList& f) {
  f("model", model, "folder of the model [required, except with --sum]").short_name = 'm';
  model::adapter_field(f, adapter);
  windows.fields(f);
  windows.protocol_field(f);
  f("loss-on", loss_on, "scored tokens: all, or those marked by tokenize --loss-on",
      {"all", "marked"});
  reach.fields(f);
  retrieve.fields(f);
  memory.fields(f);
}

model::Loaded EvaluationOptions::load() const {
  return load_to_score(model, nn::device(compute.device), compute.precision, adapter);
}

Evaluation::Evaluation(const EvaluationOptions& options, const std::set<std::string>& given,
    model::Loaded loaded, const StoreOpener& open)
    : options_(options), device_(nn::device(options.compute.device)), loaded_(std::move(loaded)) {
  if (of_pairs()) refuse_windows_of_pairs(given);
  if (of_pairs() && options_.retrieve.any())
    core::bad_usage("--retrieve: not supported for sentence pairs");
  options_.windows.settle(given);
  options_.retrieve.settle(options_.windows);
  OpenMemories memories;
  memories.open = open;
  memories.beside = open_beside(options_.memory, loaded_, options_.reach, options_.windows, device_,
      nn::dtype(options_.compute.precision));
  const auto windows = plan_windows(options_.windows, *loaded_.model, loaded_.facts);
  memory_ = memories.plan(options_.memory, windows, loaded_);
  retrieve_ = plan_retrieval(options_.retrieve, windows.window, loaded_);
  check_retrieval(retrieve_, memory_);
}

bool Evaluation::of_pairs() const {
  return nn::arch_facts(loaded_.model->options.arch).reads_source;
}

shard::Dataset Evaluation::open(const std::vector<std::string>& paths) const {
  shard::Dataset data(paths);
  shard::expect_kind(
      data.header(), {of_pairs() ? shard::Kind::pairs : shard::Kind::tokens}, data.name());
  model::check_tokenizer(loaded_, data.header(), data.name());
  return data;
}

WindowPlan Evaluation::windows(const shard::Dataset& data) const {
  WindowPlan plan = plan_windows(options_.windows, *loaded_.model, loaded_.facts, data);
  retrieve_.put_into(plan);
  plan.learned = options_.loss_on == "marked";
  if (plan.learned && !data.header().marked)
    core::bad_usage(
        "--loss-on marked: {} has no marks; encode it with tokenize --loss-on", data.name());
  return plan;
}

WindowPlan Evaluation::windows() const {
  return plan_windows(options_.windows, *loaded_.model, loaded_.facts);
}

Tuned Evaluation::tune(const shard::Dataset& data, const TuneOptions& grid,
    const std::function<void(std::uint64_t)>& progress) {
  auto tuned = infer::tune(*loaded_.model, data, windows(data), memory_, grid, device_, progress);
  memory_ = tuned.memory;
  return tuned;
}

Totals Evaluation::score(const shard::Dataset& data, const Callbacks& watch) const {
  return infer::score(*loaded_.model, data, windows(data), memory_, device_, watch);
}

void Evaluation::expect_part(const shard::Dataset& data, core::Part part) const {
  if (memory_.online && !part.whole())
    core::bad_usage(
        "--memory-weights online: the weights depend on all earlier text, which a part does "
        "not know; give constant, or tuned weights (--config)");
  windows(data);
}

PartRecord Evaluation::score_part(const shard::Dataset& data, core::Part part,
    const std::function<void(std::uint64_t)>& progress) const {
  expect_part(data, part);
  PartRecord record;
  record.part = part;
  record.signature = signature(data);
  Callbacks watch;
  watch.part = part;
  watch.cut = [&](auto begin, auto end, auto of) { record.groups = {begin, end, of}; };
  watch.added = [&](double nats, double constant_nats) {
    record.nats.push_back(nats);
    if (memory_.gates.any()) record.constant_nats.push_back(constant_nats);
  };
  watch.progress = progress;
  record.totals = score(data, watch);
  memory_.finish();
  return record;
}

std::string Evaluation::signature(const shard::Dataset& data) const {
  return infer::signature(data.fingerprint(), loaded_.fingerprint, windows(data), memory_,
             options_.compute.precision) +
         options_.reach.signature();
}

std::string Evaluation::part_note() const {
  return memory_.constant_for_parts
             ? "parts of a text have constant weights (--memory-weights constant), since learned "
               "ones depend on all earlier text; --tune finds weights for --config"
             : "";
}

std::string Evaluation::window_note() const {
  return of_pairs() ? std::string() : long_window_note(windows(), loaded_.folder);
}

std::vector<std::string> Evaluation::notes_on(const shard::Dataset& data) const {
  const auto own = data.fingerprints();
  const char* const what =
      own.size() > 1 ? "the evaluated text or a FILE of it" : "the evaluated text";
  std::vector<std::string> notes;
  if (auto note = window_note(); !note.empty()) notes.push_back(std::move(note));
  if (const auto& tuned = memory_.tuned_on;
      !tuned.empty() && std::any_of(own.begin(), own.end(), [&](const std::string& fingerprint) {
        return fingerprint.starts_with(tuned);
      }))
    notes.push_back(fmt::format(
        "the memories were tuned on {}, so the result is too good; tune on another text", what));
  memory_.notes(own, what, [&](const std::string& line) { notes.push_back(line); });
  return notes;
}

}  // namespace infer
