#include "store/removal.h"

#include "shard/dataset.h"
#include "store/datastore.h"

namespace store {
namespace {

constexpr std::size_t kBlockRows = 16'384;  // rows copied or checked at once

struct Range {
  std::size_t begin, end;  // rows
};

Range rows_of(const Datastore& store, std::size_t document) {
  const auto first = store.documents();
  const auto end = document + 1 < first.size() ? first[document + 1] : store.size();
  return {static_cast<std::size_t>(first[document]), static_cast<std::size_t>(end)};
}

// Returns the source or shard that holds the document, or null. `document` becomes the number
// within it.
template <class Of> Of* holder_of(std::vector<Of>& all, std::uint64_t& document) {
  for (Of& one : all) {
    if (document < one.documents) return &one;
    document -= one.documents;
  }
  return nullptr;
}

// Decrements the document counts of the source and the shard of a document.
void uncount(Manifest& manifest, const Receipt& receipt) {
  std::uint64_t document = receipt.document;
  const auto less = [&](auto& of) { --of.documents, of.rows -= std::min(of.rows, receipt.rows); };
  Source* const source = holder_of(manifest.sources, document);
  if (source == nullptr) core::bad_data("{}: has more documents than its sources", kManifestName);
  if (auto* const shard = holder_of(source->shards, document)) less(*shard);
  less(*source);
}

// Copies the remaining rows and updates the manifest's files, counts and digest.
void copy_rows(const Datastore& old, const std::vector<bool>& gone, Manifest& next,
    const ProgressCallback& watch) {
  const std::string& folder = old.name();
  const std::size_t width = next.width;
  next.keys_file = file_name(next, "keys", "npy");
  next.values_file = file_name(next, "values", "npy");
  next.digest = {};
  NpyWriter keys(folder + "/" + next.keys_file, "<f2", 0, width, true);
  NpyWriter values(folder + "/" + next.values_file, "<i4", 0, 1, false);
  std::optional<NpyWriter> places;
  core::Hasher places_hash;
  if (!next.whole()) {
    next.places_file = file_name(next, "places", "npy");
    places.emplace(folder + "/" + next.places_file, "<i8", 0, 1, false);
  }
  for (std::size_t row = 0; row < gone.size();) {
    std::size_t end = row;
    while (end < gone.size() && end - row < kBlockRows && !gone[end]) ++end;
    for (std::size_t i = row; i < end; ++i)
      next.digest.append(row_digest(old.keys().subspan(i * width, width), old.labels()[i]));
    keys.write(old.keys().subspan(row * width, (end - row) * width));
    values.write(old.labels().subspan(row, end - row));
    if (places) {
      const auto some = old.places().subspan(row, end - row);
      places->write(some);
      places_hash.update(std::as_bytes(some));
    }
    row = end;
    while (row < gone.size() && gone[row]) ++row;
    report(watch, "copying", row, gone.size());
  }
  keys.commit();
  values.commit();
  if (places) {
    places->commit();
    next.places_hash = places_hash.digest().hex();
  }
  next.rows = keys.rows();
}

void write_documents(
    const Datastore& old, const std::vector<std::int64_t>& removed, Manifest& next) {
  std::vector<std::int64_t> first;
  std::int64_t shift = 0;
  for (std::size_t i = 0; i < old.documents().size(); ++i) {
    if (std::ranges::binary_search(removed, static_cast<std::int64_t>(i))) {
      const Range rows = rows_of(old, i);
      shift += static_cast<std::int64_t>(rows.end - rows.begin);
    } else {
      first.push_back(old.documents()[i] - shift);
    }
  }
  next.documents_file = file_name(next, "documents", "npy");
  NpyWriter writer(old.name() + "/" + next.documents_file, "<i8", 0, 1, false);
  writer.write(std::span<const std::int64_t>(first));
  writer.commit();
  if (next.named()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < old.names().size(); ++i)
      if (!std::ranges::binary_search(removed, static_cast<std::int64_t>(i)))
        names.push_back(old.names()[i]);
    next.names_file = file_name(next, "names", "txt");
    next.names_hash = shard::write_names(old.name() + "/" + next.names_file, names);
  }
  next.documents = first.size();
  next.documents_hash = core::hash128(std::as_bytes(std::span(first))).hex();
}

// Makes the index of the new generation, reusing the existing one if possible.
void write_index(
    const Index& index, std::span<const Half> keys, Manifest& next, const std::string& folder) {
  next.index_file = file_name(next, "index", "faiss");
  next.index_hash = index.write(folder + "/" + next.index_file).hex();
  next.recall = measure_recall(
      index, keys, next.width, next.metric, kRecallQueries, kRecallNeighbours, kRecallProbes);
}

void cut_index(const Datastore& old, const std::vector<bool>& gone, Manifest& next,
    const ProgressCallback& watch) {
  const core::MappedFile file(old.name() + "/" + old.manifest().index_file);
  const auto index =
      Index::parse(file.bytes(), file.name(), next.width, next.metric, old.manifest().rows);
  const NpyArray keys(old.name() + "/" + next.keys_file, "<f2", next.rows, next.width, true);
  if (!index->remove(gone)) {
    index->reset();
    add_rows(*index, keys.values<Half>(), next.width, 0, watch);
  }
  write_index(*index, keys.values<Half>(), next, old.name());
}

// Checks the rows' digest, or the labels' hash if the store has no keys, and the labels' range.
void verify_rows(const Datastore& store, const ProgressCallback& watch) {
  const Manifest& manifest = store.manifest();
  const std::size_t width = manifest.width, rows = manifest.rows;
  shard::Chain digest;
  for (std::size_t row = 0; row < rows; ++row) {
    if (row % kBlockRows == 0) report(watch, "verifying", row, rows);
    const std::int32_t label = store.labels()[row];
    if (label < 0 || static_cast<std::uint64_t>(label) >= manifest.vocabulary)
      core::bad_data("{}/{}: damaged: row {} has label {}, but the vocabulary has {} tokens",
          store.name(), manifest.values_file, row, label, manifest.vocabulary);
    if (manifest.keyed())
      digest.append(row_digest(store.keys().subspan(row * width, width), label));
  }
  const auto expect = [&](const auto& numbers, const std::string& hash, const std::string& file) {
    if (core::hash128(std::as_bytes(numbers)).hex() != hash)
      core::bad_data("{}/{}: corrupt file: checksum mismatch", store.name(), file);
  };
  if (!manifest.keyed()) expect(store.labels(), manifest.values_hash, manifest.values_file);
  if (manifest.weighted()) expect(store.weights(), manifest.weights_hash, manifest.weights_file);
  if (!manifest.whole()) expect(store.places(), manifest.places_hash, manifest.places_file);
  if (manifest.keyed() && !(digest == manifest.digest))
    core::bad_data("{}: corrupt: the rows of {} and {} have digest {}, but {} says {}",
        store.name(), manifest.keys_file, manifest.values_file, digest.value().hex(), kManifestName,
        manifest.digest.value().hex());
}

}  // namespace

Removal::Removal(const std::string& folder, RemovalRequest request, const ProgressCallback& watch,
    const BeforeCommit& before_commit)
    : folder_(folder), request_(std::move(request)), lock_(folder) {
  auto& documents = request_.documents;
  std::ranges::sort(documents);
  documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
  expect_no_removal(folder, documents);
  manifest_ = read_manifest(folder);
  std::uint64_t generation = removed_at();
  repeated_ = generation > 0;
  if (!repeated_) {
    if (request_.generation.value_or(manifest_.generation) != manifest_.generation)
      core::bad_usage(
          "{}: is at generation {}, and these documents were not removed from generation {}; look "
          "up the document numbers again",
          folder, manifest_.generation, *request_.generation);
    remove(watch, before_commit);
    generation = manifest_.generation;
  }
  for (const Receipt& receipt : manifest_.removed)
    if (receipt.generation == generation) receipts_.push_back(receipt);
  remove_stale_files(folder, manifest_);
}

// Returns the generation that an equal request made; 0 if none did.
std::uint64_t Removal::removed_at() const {
  const auto begun = read_progress(folder_);
  const bool removes = begun && !begun->removes().empty();
  std::uint64_t wanted = 0;
  if (request_.generation) {
    wanted = *request_.generation + 1;
  } else {
    if (removes && begun->generation() > manifest_.generation) return 0;  // it resumes
    for (const Receipt& receipt : manifest_.removed) wanted = std::max(wanted, receipt.generation);
  }
  std::vector<std::int64_t> gone;
  for (const Receipt& receipt : manifest_.removed)
    if (receipt.generation == wanted) gone.push_back(static_cast<std::int64_t>(receipt.document));
  std::ranges::sort(gone);
  return !gone.empty() && gone == request_.documents ? wanted : 0;
}

std::string Removal::repetition() const {
  return fmt::format(
      "{}: nothing removed: these documents were already removed in generation {}; to remove "
      "the documents that have {} now: store remove --generation {} --document {} {}",
      folder_, receipts_.front().generation,
      request_.documents.size() == 1 ? "this number" : "these numbers", manifest_.generation,
      fmt::join(request_.documents, ","), folder_);
}

void Removal::remove(const ProgressCallback& watch, const BeforeCommit& before_commit) {
  const auto& documents = request_.documents;
  const Datastore old(folder_);
  old.expect_keys("removing documents");
  if (old.manifest().weighted())
    core::bad_usage(
        "{}: entries of several documents were merged with --prune; rebuild it without the "
        "document",
        folder_);
  const auto count = static_cast<std::int64_t>(old.documents().size());
  for (const std::int64_t document : documents)
    if (document < 0 || document >= count)
      core::bad_usage("{}: document {} is out of range; it has {} documents, counted from 0",
          folder_, document, count);
  if (static_cast<std::int64_t>(documents.size()) == count)
    core::bad_usage("{}: no document would remain; remove the folder instead", folder_);

  Manifest next = old.manifest();
  ++next.generation;
  std::vector<Receipt> receipts;
  std::vector<bool> gone(old.manifest().rows);
  for (const std::int64_t document : documents) {
    const Range rows = rows_of(old, static_cast<std::size_t>(document));
    std::fill(gone.begin() + static_cast<std::ptrdiff_t>(rows.begin),
        gone.begin() + static_cast<std::ptrdiff_t>(rows.end), true);
    const auto labels = old.labels().subspan(rows.begin, rows.end - rows.begin);
    receipts.push_back({static_cast<std::uint64_t>(document), labels.size(),
        core::hash128(std::as_bytes(labels)).hex(), next.generation});
  }
  // Go from the last to the first, so that lower numbers stay valid.
  for (std::size_t i = receipts.size(); i-- > 0;) uncount(next, receipts[i]);
  next.removed.insert(next.removed.end(), receipts.begin(), receipts.end());
  write_progress(folder_, Progress::removal(documents, next.generation));
  try {
    copy_rows(old, gone, next, watch);
    write_documents(old, documents, next);
    if (!next.exact()) cut_index(old, gone, next, watch);
    core::sync_folder(folder_);
    if (before_commit) before_commit();
    write_manifest(folder_, next);
  } catch (...) {
    // The error is reported. If the removal is not committed, the store is unchanged and nothing is
    // left to resume.
    if (read_manifest(folder_).generation < next.generation) {
      remove_progress(folder_);
      remove_stale_files(folder_, old.manifest());
    }
    throw;
  }
  manifest_ = std::move(next);
}

void Removal::done() {
  const auto begun = read_progress(folder_);
  if (begun && !begun->removes().empty() && begun->generation() <= manifest_.generation)
    remove_progress(folder_);
}

Manifest rebuild_index(const std::string& folder, const std::string& index,
    const ProgressCallback& watch, const BeforeCommit& before_commit) {
  const core::FolderLock lock(folder);
  expect_no_removal(folder);
  const Datastore store = Datastore::without_index(folder);
  store.expect_keys("rebuilding its index");
  Manifest next = store.manifest();
  ++next.generation;
  if (!index.empty()) next.index = index;
  next.index_file.clear(), next.index_hash.clear();
  next.recall = Recall{kRecallNeighbours, 0, 0, 1};
  verify_rows(store, watch);
  if (!next.exact()) {
    const auto made = train_index(next.index, store.keys(), next.width, next.metric, watch);
    add_rows(*made, store.keys(), next.width, 0, watch);
    write_index(*made, store.keys(), next, folder);
  }
  core::sync_folder(folder);
  if (before_commit) before_commit();
  write_manifest(folder, next);
  remove_stale_files(folder, next);
  return next;
}

void verify(const std::string& folder, const ProgressCallback& watch) {
  verify_rows(Datastore(folder), watch);
}

}  // namespace store
