#include "store/datastore.h"

#include <filesystem>

#include "shard/dataset.h"
#include "store/builder.h"

namespace store {

void Store::expect_keys(std::string_view what) const {
  if (manifest().keyed()) return;
  core::bad_usage(
      "{}: its keys were not kept (--keys none), and {} needs them; build the store again "
      "with --keys all",
      name(), what);
}

void Store::expect_rescorable() const {
  if (manifest().keyed()) return;
  core::bad_usage(
      "{}: its keys were not kept (--keys none), and --rescore needs them; link {}/{} to "
      "the folder of a store with the same keys",
      name(), name(), kKeysLink);
}

void Store::expect_followable() const {
  core::bad_usage("{}: its rows are on another rank; pointers cannot be followed", name());
}

std::int64_t Store::after(std::int64_t /*row*/) const {
  expect_followable();
  return -1;
}

void Store::score(std::span<const float> /*query*/, std::span<const std::int64_t> /*rows*/,
    std::span<float> /*scores*/, std::span<std::int32_t> /*labels*/) const {
  expect_followable();
}

void Store::expect_model(
    const std::string& model, const std::string& tokenizer, const std::string& model_name) const {
  const Manifest& own = manifest();
  if (!model.empty() && model != own.model)
    core::bad_data("{}: was built with the model {}, but {} is {}; build a store with this model",
        name(), own.model, model_name, model);
  if (!tokenizer.empty() && !own.tokenizer.empty() && tokenizer != own.tokenizer)
    core::bad_data("{}: was built with the tokenizer {}, but {} has {}", name(), own.tokenizer,
        model_name, tokenizer);
}

namespace {

float score_of(Metric metric, const float* query, const float* key, std::int64_t width) {
  float sum = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    const float difference = query[j] - key[j];
    sum += metric == Metric::ip ? query[j] * key[j] : -difference * difference;
  }
  return sum;
}

void expect_range(std::int64_t k, std::int64_t nprobe) {
  if (k < 1 || k > kMostNeighbours)
    core::bad_usage("k is {}; it takes 1 to {}", k, kMostNeighbours);
  if (nprobe < 1) core::bad_usage("nprobe is {}; it takes 1 or more", nprobe);
}

// Checks that first rows ascend from 0 to at most n, so that every row belongs to a document.
void expect_documents(
    std::span<const std::int64_t> first, std::uint64_t rows, const std::string& name) {
  if (first.empty() ? rows > 0 : first[0] != 0)
    core::bad_data("{}: damaged: the first of {} rows belongs to no document", name, rows);
  std::int64_t last = 0;
  for (const std::int64_t row : first) {
    if (row < last || static_cast<std::uint64_t>(row) > rows)
      core::bad_value(name, "a document's first row", row, fmt::format("{} to {}", last, rows));
    last = row;
  }
}

// Returns the first row of the contiguous run of places that ends at `row`.
std::int64_t unbroken(std::span<const std::int64_t> places, std::int64_t first, std::int64_t row) {
  const auto place = [&](std::int64_t of) {
    return static_cast<std::uint64_t>(places[static_cast<std::size_t>(of)]);
  };
  while (row > first && place(row - 1) + 1 == place(row)) --row;
  return row;
}

}  // namespace

Datastore::Datastore(const std::string& folder, bool with_index) : folder_(folder) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    manifest_ = read_manifest(folder);
    try {
      open_files(with_index);
      return;
    } catch (const core::Error&) {  // a removal may have replaced the files meanwhile
      if (attempt == kAttempts || read_manifest(folder).generation == manifest_.generation) throw;
    }
  }
}

Datastore::Datastore(const std::string& folder, Manifest manifest)
    : folder_(folder), manifest_(std::move(manifest)) {
  open_files(/*with_index=*/true);
}

void Datastore::open_files(bool with_index) {
  const Manifest& m = manifest_;
  if (m.keyed()) keys_ = NpyArray(folder_ + "/" + m.keys_file, "<f2", m.rows, m.width, true);
  else open_linked_keys();
  values_ = NpyArray(folder_ + "/" + m.values_file, "<i4", m.rows, 1, false);
  documents_ = NpyArray(folder_ + "/" + m.documents_file, "<i8", m.documents, 1, false);
  if (!m.whole()) places_ = NpyArray(folder_ + "/" + m.places_file, "<i8", m.rows, 1, false);
  if (m.projected())
    projection_ = read_projection(
        folder_ + "/" + m.projection_file, m.model_width, m.width, m.projection_hash);
  if (m.weighted()) weights_ = NpyArray(folder_ + "/" + m.weights_file, "<i4", m.rows, 1, false);
  const auto first = documents();
  if (core::hash128(std::as_bytes(first)).hex() != m.documents_hash)
    core::bad_data("{}/{}: corrupt file: checksum mismatch", folder_, m.documents_file);
  expect_documents(first, m.rows, folder_ + "/" + m.documents_file);
  if (m.named())
    names_ = shard::read_names(folder_ + "/" + m.names_file, m.documents, m.names_hash);
  if (m.keyed()) exact_ = std::make_unique<const ExactSearch>(keys(), width(), m.metric);
  if (m.exact() || !with_index) return;
  const core::MappedFile file(folder_ + "/" + m.index_file);
  if (core::hash128(file.bytes()).hex() != m.index_hash)
    core::bad_data("{}: corrupt, or of another generation: its checksum differs from {}",
        file.name(), kManifestName);
  index_ = Index::parse(file.bytes(), file.name(), m.width, m.metric, m.rows);
}

// Maps the keys of another store, which must be those that this store had.
void Datastore::open_linked_keys() {
  const std::string link = folder_ + "/" + kKeysLink;
  if (!std::filesystem::exists(std::filesystem::symlink_status(link))) return;
  const Manifest other = read_manifest(link);
  if (!other.keyed() || other.rows != manifest_.rows || other.width != manifest_.width ||
      !(other.digest == manifest_.digest))
    core::bad_data(
        "{}: does not have the keys of {}; link a store of the same rows", link, folder_);
  keys_ = NpyArray(link + "/" + other.keys_file, "<f2", other.rows, other.width, true);
}

std::int64_t Datastore::document_of(std::int64_t row) const {
  const auto first = documents();
  return std::ranges::upper_bound(first, row) - first.begin() - 1;
}

RowContext Datastore::context(std::int64_t row, std::int64_t most) const {
  const std::int64_t document = document_of(row);
  const std::int64_t first = std::max(documents()[static_cast<std::size_t>(document)], row - most);
  const std::int64_t begin = manifest_.whole() ? first : unbroken(places(), first, row);
  const auto before =
      labels().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(row - begin));
  return {document, {before.begin(), before.end()},
      names_.empty() ? std::string() : names_[static_cast<std::size_t>(document)]};
}

void Datastore::expect_rescorable() const {
  if (keys_.values<Half>().empty() && size() > 0) Store::expect_rescorable();
}

void Datastore::expect_followable() const {
  expect_keys("following pointers");
  if (manifest_.reduced())
    core::bad_usage(
        "{}: does not have every original key, which following pointers needs", folder_);
}

std::int64_t Datastore::after(std::int64_t row) const {
  expect_followable();
  const auto first = documents();
  const std::int64_t next = row + 1;
  if (next >= size() || std::ranges::binary_search(first, next)) return -1;
  return next;
}

void Datastore::score(std::span<const float> all, std::span<const std::int64_t> rows,
    std::span<float> scores, std::span<std::int32_t> labels) const {
  expect_keys("scoring rows");
  expect_finite(all);
  std::vector<float> room;
  const auto query = scaled(all, manifest_.key_scale, room);
  std::vector<float> key(manifest_.width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    to_float(&keys()[row * manifest_.width], key);
    const float exact = score_of(manifest_.metric, query.data(), key.data(), width());
    scores[i] = std::isnan(exact) ? -std::numeric_limits<float>::infinity() : exact;
    labels[i] = this->labels()[row];
  }
  undo_scale(scores.first(rows.size()));
}

void Datastore::expect_finite(std::span<const float> queries) const {
  if (!std::ranges::all_of(queries, [](float x) { return std::isfinite(x); }))
    core::bad_data("{}: a query is not finite; the model's weights may be damaged", folder_);
}

Hits Datastore::empty_hits(std::span<const float> queries, const SearchOptions& options) const {
  expect_range(options.k, options.nprobe);
  expect_finite(queries);
  const std::size_t n = queries.size() / manifest_.width * static_cast<std::size_t>(options.k);
  Hits hits;
  hits.k = options.k;
  hits.ids.resize(n), hits.scores.resize(n), hits.labels.resize(n);
  return hits;
}

void Datastore::add_labels(Hits& hits) const {
  const auto labels = this->labels();
  for (std::size_t i = 0; i < hits.ids.size(); ++i)
    hits.labels[i] = hits.ids[i] < 0 ? -1 : labels[static_cast<std::size_t>(hits.ids[i])];
  if (!manifest_.weighted()) return;
  hits.weights.assign(hits.ids.size(), 1);
  for (std::size_t i = 0; i < hits.ids.size(); ++i) {
    if (hits.ids[i] < 0) continue;
    hits.weights[i] = weights()[static_cast<std::size_t>(hits.ids[i])];
    if (hits.weights[i] < 1)
      core::bad_value(folder_ + "/" + manifest_.weights_file,
          fmt::format("the weight of row {}", hits.ids[i]), hits.weights[i], "1 and more");
  }
}

void Datastore::rescore(std::span<const float> queries, Hits& hits) const {
  std::vector<float> key(manifest_.width);
  const auto keys = keys_.values<Half>();
  const auto k = static_cast<std::size_t>(hits.k);
  std::vector<std::size_t> order(k);
  std::vector<std::pair<float, std::int64_t>> sorted(k);
  for (std::size_t q = 0; q * k < hits.ids.size(); ++q) {
    for (std::size_t i = 0; i < k; ++i) {
      const std::int64_t id = hits.ids[q * k + i];
      float score = -std::numeric_limits<float>::infinity();
      if (id >= 0) {
        to_float(&keys[static_cast<std::size_t>(id) * manifest_.width], key);
        const float exact =
            score_of(manifest_.metric, &queries[q * manifest_.width], key.data(), width());
        if (!std::isnan(exact)) score = exact;  // NaN from a corrupt key; sorting needs an order
      }
      sorted[i] = {score, id};
    }
    std::ranges::sort(sorted, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (std::size_t i = 0; i < k; ++i)
      hits.scores[q * k + i] = sorted[i].first, hits.ids[q * k + i] = sorted[i].second;
  }
}

std::span<const float> Datastore::project(
    std::span<const float> queries, std::vector<float>& room) const {
  const auto keys = scaled(queries, manifest_.key_scale, room);
  if (!projection_.any()) return keys;
  room = projection_.apply(keys);
  return room;
}

void Datastore::undo_scale(std::span<float> scores) const {
  if (!manifest_.scaled()) return;
  const auto square = static_cast<float>(manifest_.key_scale * manifest_.key_scale);
  for (float& score : scores) score /= square;
}

Hits Datastore::search(std::span<const float> all, const SearchOptions& options) const {
  if (!index_) return search_exactly(all, options);
  if (options.rescore) expect_rescorable();
  std::vector<float> room;
  const auto queries = project(all, room);
  Hits hits = empty_hits(queries, options);
  index_->search(queries, options.k, options.nprobe, hits.ids, hits.scores);
  if (options.rescore) rescore(queries, hits);
  undo_scale(hits.scores);
  add_labels(hits);
  return hits;
}

Hits Datastore::search_exactly(std::span<const float> all, const SearchOptions& options) const {
  expect_keys("exact search");
  std::vector<float> room;
  const auto queries = project(all, room);
  Hits hits = empty_hits(queries, options);
  exact_->search(queries, options.k, options.threads, hits.ids, hits.scores);
  undo_scale(hits.scores);
  add_labels(hits);
  return hits;
}

Recall measure_recall(
    const Datastore& store, std::int64_t queries, std::int64_t k, std::int64_t nprobe) {
  if (queries < 1) core::bad_usage("queries is {}; it takes 1 or more", queries);
  expect_range(k, nprobe);
  store.expect_keys("measuring recall");
  if (store.index() == nullptr) return {std::min(k, store.size()), 0, 0, 1};
  return measure_recall(
      *store.index(), store.keys(), store.manifest().width, store.metric(), queries, k, nprobe);
}

}  // namespace store
