#include "store/merge.h"

#include "core/launcher.h"
#include "store/datastore.h"

namespace store {
namespace {

constexpr std::uint64_t kRowsAtOnce = 16'384;

/// The parts sorted by number, from 1.
using Parts = std::map<std::uint64_t, std::unique_ptr<const Datastore>>;

const Source& source_of(const Datastore& part) { return part.manifest().sources[0]; }

void expect_part(const Datastore& part) {
  const Manifest& m = part.manifest();
  part.expect_keys("merging");
  if (!m.removed.empty())
    core::bad_usage(
        "{}: documents were removed from it; only unchanged parts can be merged", part.name());
  if (m.sources.size() != 1 || !m.sources[0].part)
    core::bad_usage("{}: not a part of a store from build-datastore --part", part.name());
  const SourcePart& place = *m.sources[0].part;
  if (m.rows != place.end - place.begin || m.sources[0].documents != m.documents)
    core::bad_data(
        "{}: damaged: it has {} rows of {} documents, but its source says rows {} to {} of {}",
        part.name(), m.rows, m.documents, place.begin, place.end, m.sources[0].documents);
}

void expect_together(const Datastore& first, const Datastore& part) {
  const auto same = [&](const char* what, const auto& a, const auto& b) {
    if (a != b)
      core::bad_usage("{}: belongs to another store than {}: {} {}, not {}", part.name(),
          first.name(), what, b, a);
  };
  const Manifest &a = first.manifest(), &b = part.manifest();
  same("model", a.model, b.model);
  same("tokenizer", a.tokenizer, b.tokenizer);
  same("data", source_of(first).data, source_of(part).data);
  same("windows", core::dump(source_of(first).windows), core::dump(source_of(part).windows));
  same("metric", name_of(a.metric), name_of(b.metric));
  same("key-scale", a.key_scale, b.key_scale);
  same("width", a.width, b.width);
  same("vocabulary", a.vocabulary, b.vocabulary);
  same("documents", a.documents, b.documents);
  same("number of parts", source_of(first).part->of, source_of(part).part->of);
}

Parts open(const std::vector<std::string>& folders) {
  Parts parts;
  core::PartNames names;
  for (const auto& folder : folders) {
    std::unique_ptr<const Datastore> part(new Datastore(Datastore::without_index(folder)));
    expect_part(*part);
    if (!parts.empty()) expect_together(*parts.begin()->second, *part);
    const SourcePart& place = *source_of(*part).part;
    names.add(
        {static_cast<std::int64_t>(place.number) - 1, static_cast<std::int64_t>(place.of)}, folder);
    parts[place.number] = std::move(part);
  }
  if (parts.empty()) core::bad_usage("parts are missing; give the stores of all parts");
  names.expect_all();
  std::uint64_t row = 0;
  for (const auto& [number, part] : parts) {
    const SourcePart& place = *source_of(*part).part;
    if (place.begin != row)
      core::bad_data("{}: damaged: begins at row {}, not {}", part->name(), place.begin, row);
    row = place.end;
  }
  return parts;
}

Plan plan_of(const Datastore& part, const std::string& index) {
  Plan plan;
  const Manifest& m = part.manifest();
  plan.model = plan.model_name = m.model;
  plan.tokenizer = m.tokenizer;
  plan.width = m.width, plan.vocabulary = m.vocabulary, plan.metric = m.metric;
  plan.key_scale = m.key_scale;
  plan.index = index;
  plan.data = source_of(part).data;
  plan.data_name = "those of " + part.name();
  plan.shards = source_of(part).shards;
  plan.windows = source_of(part).windows;
  plan.names = part.names();
  plan.merges = true;
  return plan;
}

// Copies all rows of the parts that the builder does not have yet. A part is committed once the
// digest of its rows is correct.
void copy(const Parts& parts, Builder& builder, const ProgressCallback& watch) {
  const std::uint64_t rows = source_of(*parts.rbegin()->second).part->end;
  shard::Chain digest;
  for (const auto& [number, part] : parts) {
    const Manifest& m = part->manifest();
    const SourcePart& place = *source_of(*part).part;
    digest.append_chain(m.digest, m.rows);
    std::uint64_t at = std::clamp(builder.rows(), place.begin, place.end) - place.begin;
    for (std::uint64_t n = 0; at < m.rows; at += n) {
      if (watch) watch("merging", place.begin + at, rows);
      n = std::min(kRowsAtOnce, m.rows - at);
      builder.add(part->keys().subspan(at * m.width, n * m.width), part->labels().subspan(at, n));
    }
    if (place.end <= builder.rows()) continue;
    if (!(builder.digest() == digest))
      core::bad_data("{}: damaged: its rows do not match its {}", part->name(), kManifestName);
    builder.commit(place.end);
  }
}

// Returns the first row of each document in the whole: the sum of its first rows in the parts.
std::vector<std::int64_t> first_rows(const Parts& parts) {
  std::vector<std::int64_t> first(parts.begin()->second->documents().size());
  for (const auto& [number, part] : parts)
    for (std::size_t i = 0; i < first.size(); ++i) first[i] += part->documents()[i];
  return first;
}

}  // namespace

Manifest merge(const std::vector<std::string>& folders, const std::string& folder,
    const std::string& index, const ProgressCallback& watch, const Reduction& reduction) {
  const Parts parts = open(folders);
  const Datastore& first = *parts.begin()->second;
  Plan plan = plan_of(first, index);
  plan.reduction = reduction;
  // Refuse now rather than after copying the rows.
  expect_possible(plan, source_of(*parts.rbegin()->second).part->end);
  std::optional<Builder> builder(std::in_place, folder, plan, false);
  if (builder->complete()) return read_manifest(folder);
  try {
    copy(parts, *builder, watch);
  } catch (const core::Error& error) {
    builder.reset();
    if (error.code() == core::Code::bad_data)
      remove_store(folder);  // the unfinished store is useless
    throw;
  }
  return builder->finish(first_rows(parts), watch);
}

}  // namespace store
