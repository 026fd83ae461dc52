#include "infer/score/part_record.h"

#include "infer/score/evaluation.h"

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
      "I/N: score the I-th of N parts, for --sum, with constant weights of memories unless tuned; "
      "launcher: part of this task of srun or of a job array");
  f("sum", sum, "sum the results of all parts: FILEs are the outputs of --part");
  f("datastore-ranks", datastore_ranks,
      "with --ranks: each rank holds only the stores of its own --datastore, and searches "
      "them for all ranks");
}

void PartOptions::check(const std::set<std::string>& given, bool ranks) const {
  if (datastore_ranks && !ranks) core::bad_usage("--datastore-ranks: requires --ranks launcher");
  if (!any() && !ranks) return;
  const char* const mine = sum ? "sum" : ranks ? "ranks" : "part";
  core::leave_out(mine, "gives the figures alone",
      {"tune", "per-token", "by", "ablate", "retrieval-at", "retrieve-log", "fail-above",
          "timings"},
      given);
  if (sum) {
    EvaluationOptions theirs;
    core::leave_out(mine, "of parts that are there", core::list_fields(theirs), given);
    core::leave_out(mine, "of parts that are there", core::list_fields(theirs.compute), given);
    core::leave_out(mine, "of parts that are there", {"counts"}, given);
  }
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
    core::bad_data("{}: is part {} of {}", origin, record.part.index + 1, record.part.count);
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
  std::vector<NamedLine> lines;
  lines.reserve(paths.size());
  for (const auto& path : paths) lines.push_back({path, core::read_text(path)});
  return sum_parts(lines);
}

}  // namespace infer
