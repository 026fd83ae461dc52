#include "infer/score/part_record.h"

#include <map>
#include <span>

#include "core/error.h"
#include "core/hash.h"
#include "core/io.h"
#include "core/json.h"
#include "infer/score/report.h"

namespace infer {

using core::Code;
using core::fail;

void PartOptions::fields(core::FieldList& f) {
  f.group("Parts");
  f("part", part, "I/N: score the I-th of N parts, for --sum; launcher: as srun or an array says");
  f("sum", sum, "the figures of all parts together: the FILEs are what --part wrote");
  f("datastore-ranks", datastore_ranks,
    "--ranks: each rank's --datastore are parts that it alone has, and searches for all ranks");
}

void PartOptions::check(const std::set<std::string>& given, bool ranks) const {
  if (datastore_ranks && !ranks) fail(Code::usage, "--datastore-ranks: goes with --ranks launcher");
  if (!any() && !ranks) return;
  const char* const mine = sum ? "sum" : ranks ? "ranks" : "part";
  for (const char* flag : {"tune", "per-token", "by", "retrieval-at", "fail-above", "timings"})
    if (given.count(flag) > 0)
      fail(Code::usage, "--{}: gives the figures alone; leave --{} out", mine, flag);
  if (sum && !part.empty()) fail(Code::usage, "--sum: is of all parts; leave --part out");
  if (ranks && any())
    fail(Code::usage, "--ranks: each rank is a part; leave --{} out", sum ? "sum" : "part");
}

namespace {

// Of all members but "hash" itself.
std::string hash_of(core::Json line) {
  line.erase("hash");
  const auto text = core::dump(line);
  return core::hash128(std::as_bytes(std::span(text))).hex();
}

}  // namespace

std::string to_text(const PartRecord& record) {
  core::OrderedJson line{{"part", record.part.index + 1}, {"parts", record.part.count},
                         {"groups", record.groups},       {"signature", record.signature},
                         {"tokens", record.tokens},       {"bytes", record.bytes},
                         {"words", record.words},         {"nats", record.nats}};
  line["hash"] = hash_of(core::Json::parse(core::dump(line)));
  return core::dump(line) + "\n";
}

PartRecord parse_part(const std::string& text, const std::string& origin) {
  const core::Json line = core::parse_json(text, origin);
  PartRecord record;
  if (core::get<std::string>(line, "hash", origin) != hash_of(line))
    fail(Code::bad_data, "{}: damaged: its hash is another", origin);
  record.groups = core::get<std::array<std::int64_t, 3>>(line, "groups", origin);
  record.part.index = core::get<std::int64_t>(line, "part", origin) - 1;
  record.part.count = core::get<std::int64_t>(line, "parts", origin);
  record.signature = core::get<std::string>(line, "signature", origin);
  record.tokens = core::get<std::uint64_t>(line, "tokens", origin);
  record.bytes = core::get<double>(line, "bytes", origin);
  record.words = core::get<double>(line, "words", origin);
  record.nats = core::get<std::vector<double>>(line, "nats", origin);
  if (record.part.index < 0 || record.part.index >= record.part.count)
    fail(Code::bad_data, "{}: is part {} of {}", origin, record.part.index + 1, record.part.count);
  return record;
}

core::OrderedJson PartsSum::figures() const {
  core::OrderedJson figures = infer::figures(totals);
  figures["signature"] = signature;
  return figures;
}

PartsSum sum_parts(const std::vector<NamedLine>& lines) {
  std::map<std::int64_t, PartRecord> parts;
  std::map<std::int64_t, std::string> names;
  for (const auto& [name, line] : lines) {
    auto record = parse_part(line, name);
    const std::int64_t index = record.part.index;
    if (!parts.empty()) {
      const auto& [first, before] = *parts.begin();
      if (record.signature != before.signature || record.part.count != before.part.count)
        fail(Code::usage, "{}: is no part of the evaluation of {}: {} of {} parts, not {} of {}",
             name, names.at(first), record.signature, record.part.count, before.signature,
             before.part.count);
    }
    if (const auto twice = names.find(index); twice != names.end())
      fail(Code::usage, "{}: is part {}, as {} is", name, index + 1, twice->second);
    names[index] = name;
    parts[index] = std::move(record);
  }
  if (parts.empty()) fail(Code::usage, "--sum: give the files of all parts");
  const std::int64_t count = parts.begin()->second.part.count;
  PartsSum sum;
  sum.signature = parts.begin()->second.signature;
  std::int64_t begin = 0;
  for (std::int64_t index = 0; index < count; ++index) {
    const auto found = parts.find(index);
    if (found == parts.end())
      fail(Code::usage, "--sum: part {} of {} is missing", index + 1, count);
    const auto& record = found->second;
    const auto& last = parts.rbegin()->second;
    if (record.groups[0] != begin || record.groups[2] != last.groups[2] ||
        record.bytes != last.bytes || record.words != last.words ||
        (index == count - 1 && record.groups[1] != record.groups[2]))
      fail(Code::usage, "{}: is cut in another way than {}; give all parts the same --batch-tokens",
           names.at(index), names.at(count - 1));
    begin = record.groups[1];
    for (const double nats : record.nats) sum.totals.nats += nats;
    sum.totals.tokens += record.tokens;
    sum.totals.bytes = record.bytes;
    sum.totals.words = record.words;
  }
  if (sum.totals.tokens == 0) fail(Code::bad_data, "{}: nothing to score in it", names.at(0));
  return sum;
}

PartsSum sum_files(const std::vector<std::string>& paths) {
  std::vector<NamedLine> lines;
  lines.reserve(paths.size());
  for (const auto& path : paths) lines.push_back({path, core::read_text(path)});
  return sum_parts(lines);
}

}  // namespace infer
