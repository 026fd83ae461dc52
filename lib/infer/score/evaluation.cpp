#include "infer/score/evaluation.h"

#include "model/adapter.h"

namespace infer {
namespace {

void add_gates(Totals& totals, const PartRecord& record) {
  if (const auto& searches = record.totals.searches) {
    if (!totals.searches) totals.searches.emplace();
    totals.searches->add(*searches);
  }
  const auto& gates = record.totals.gates;
  if (!gates) return;
  if (!totals.gates) totals.gates.emplace();
  for (const double nats : record.constant_nats) totals.gates->constant_nats += nats;
  totals.gates->worse += gates->worse;
  totals.gates->compared = gates->compared;
}

}  // namespace

void PartOptions::fields(core::FieldList& f) {
  const auto in_parts = f.group("Parts");
  f("part", part,
      "I/N: score the I-th of N parts, for --sum; weights of memories are constant unless tuned; "
      "launcher: I/N of this task of srun or a job array");
  f("sum", sum, "sum the results of all parts: FILEs are the outputs of --part");
  f("datastore-ranks", datastore_ranks,
      "with --ranks: each rank holds only the stores of its own --datastore, and searches "
      "them for all ranks");
}

void PartOptions::check(bool ranks) const {
  if (datastore_ranks && !ranks) core::bad_usage("--datastore-ranks: requires --ranks launcher");
  if (sum && core::is_part(part)) core::bad_usage("--sum: cannot be combined with --part");
  if (ranks && any())
    core::bad_usage("--ranks: cannot be combined with --{}", sum ? "sum" : "part");
}

std::string to_text(const PartRecord& record) {
  core::OrderedJson line{{"part", record.part.index + 1}, {"parts", record.part.count},
      {"groups", record.groups}, {"signature", record.signature}, {"revision", record.revision},
      {"tokens", record.totals.tokens}, {"bytes", record.totals.bytes},
      {"words", record.totals.words}, {"nats", record.nats}};
  if (const auto& searches = record.totals.searches)
    line["searches"] = {searches->made, searches->followed, searches->skipped};
  if (const auto& gates = record.totals.gates) {
    line["worse"] = gates->worse, line["compared"] = gates->compared;
    line["constant_nats"] = record.constant_nats;
  }
  return core::dump(core::sealed(line)) + "\n";
}

PartRecord parse_part(const std::string& text, const std::string& origin) {
  const core::Json line = core::parse_json(text, origin);
  PartRecord record;
  core::expect_sealed(line, origin);
  record.groups = core::get<std::array<std::int64_t, 3>>(line, "groups", origin);
  record.part.index = core::get<std::int64_t>(line, "part", origin) - 1;
  record.part.count = core::get<std::int64_t>(line, "parts", origin);
  record.signature = core::get<std::string>(line, "signature", origin);
  record.revision =
      line.contains("revision") ? core::get<std::string>(line, "revision", origin) : "unknown";
  record.totals.tokens = core::get<std::uint64_t>(line, "tokens", origin);
  record.totals.bytes = core::get<double>(line, "bytes", origin);
  record.totals.words = core::get<double>(line, "words", origin);
  record.nats = core::get<std::vector<double>>(line, "nats", origin);
  if (line.contains("searches")) {
    const auto counts = core::get<std::array<std::int64_t, 3>>(line, "searches", origin);
    record.totals.searches = SearchCounts{counts[0], counts[1], counts[2]};
  }
  if (line.contains("worse")) {
    auto& gates = record.totals.gates.emplace();
    gates.worse = core::get<std::uint64_t>(line, "worse", origin);
    gates.compared = core::get<bool>(line, "compared", origin);
    record.constant_nats = core::get<std::vector<double>>(line, "constant_nats", origin);
  }
  if (record.part.index < 0 || record.part.index >= record.part.count)
    core::bad_data(
        "{}: part {} is not one of {}", origin, record.part.index + 1, record.part.count);
  return record;
}

core::OrderedJson PartsSum::figures() const {
  core::OrderedJson figures = infer::figures(totals);
  figures["signature"] = signature;
  figures["revision"] = fmt::format("{}", fmt::join(revisions, ","));
  return figures;
}

PartsSum sum_parts(const std::vector<NamedLine>& lines) {
  std::map<std::int64_t, PartRecord> parts;
  core::PartNames names;
  for (const auto& [name, line] : lines) {
    auto record = parse_part(line, name);
    if (!parts.empty()) {
      const auto& before = parts.begin()->second;
      if (record.signature != before.signature || record.part.count != before.part.count)
        core::bad_usage("{}: belongs to another evaluation than {}: {} of {} parts, not {} of {}",
            name, names.any(), record.signature, record.part.count, before.signature,
            before.part.count);
    }
    names.add(record.part, name);
    parts[record.part.index] = std::move(record);
  }
  if (parts.empty()) core::bad_usage("--sum: give the files of all parts");
  names.expect_all("sum");
  const auto& last = parts.rbegin()->second;
  PartsSum sum;
  sum.signature = last.signature;
  std::int64_t begin = 0;
  for (const auto& [index, record] : parts) {
    if (record.groups[0] != begin || record.groups[2] != last.groups[2] ||
        record.totals.bytes != last.totals.bytes || record.totals.words != last.totals.words ||
        (&record == &last && record.groups[1] != record.groups[2]))
      core::bad_usage("{}: has other boundaries than {}; use the same --batch-tokens for all parts",
          names.name(index), names.name(last.part.index));
    begin = record.groups[1];
    for (const double nats : record.nats) sum.totals.nats += nats;
    sum.totals.tokens += record.totals.tokens;
    sum.revisions.insert(record.revision);
    add_gates(sum.totals, record);
  }
  sum.totals.bytes = last.totals.bytes;
  sum.totals.words = last.totals.words;
  if (sum.totals.tokens == 0) core::bad_data("{}: has nothing to score", names.name(0));
  return sum;
}

PartsSum sum_files(const std::vector<std::string>& paths) {
  return sum_parts(core::mapped(paths, [](const auto& path) {
    return NamedLine{path, core::read_text(path)};
  }));
}

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
  return load_to_score(
      model, nn::device(compute.device), dynamic.weight_type(compute.precision), adapter);
}

Evaluation::Evaluation(const EvaluationOptions& options, model::Loaded loaded, OpenMemories open)
    : options_(options), device_(nn::device(options.compute.device)), loaded_(std::move(loaded)) {
  options_.compute.precision = type_loaded(options_.compute.precision, loaded_);
  if (of_pairs()) options_.windows.refuse_for_pairs();
  if (of_pairs() && options_.retrieve.any())
    core::bad_usage("--retrieve: not supported for sentence pairs");
  options_.dynamic.check(of_pairs() || options_.retrieve.any(), options_.compute.precision);
  options_.windows.settle();
  options_.retrieve.settle(options_.windows);
  open.models = open_models(options_.memory, loaded_, options_.reach, options_.windows, device_,
      nn::dtype(options_.compute.precision));
  const auto windows = plan_windows(options_.windows, *loaded_.model, loaded_.facts);
  memory_ = open.plan(options_.memory, windows, loaded_);
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
  plan.dynamic = options_.dynamic;
  if (plan.dynamic.on) plan.batch_tokens = 1;  // each window by itself
  if (plan.dynamic.on && plan.carried && nn::arch_facts(loaded_.model->options.arch).layer_memory)
    core::bad_usage("--dynamic-evaluation: the layers keep memories; give --carry off");
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
  if (const auto search = memory_.search(); search.where != nullptr) search.where->finish();
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
  if (options_.dynamic.on && static_cast<std::int64_t>(data.size()) <= windows(data).window + 1)
    notes.emplace_back(
        "--dynamic-evaluation changes no figure of a text of one window; give a shorter --window");
  if (const auto& tuned = memory_.tuned_on;
      !tuned.empty() &&
      std::ranges::any_of(own, [&](const auto& print) { return print.starts_with(tuned); }))
    notes.push_back(fmt::format(
        "the memories were tuned on {}, so the result is too good; tune on another text", what));
  memory_.notes(own, what, [&](const std::string& line) { notes.push_back(line); });
  return notes;
}

}  // namespace infer
