#include "store/builder.h"

#include <filesystem>

#include "core/rng.h"
#include "shard/dataset.h"
#include "store/datastore.h"
#include "store/reduction.h"

namespace store {
namespace {

namespace fs = std::filesystem;
using core::Json;

bool finite(Half half) { return (half & 0x7c00U) != 0x7c00U; }

// Draws `count` different rows, ascending.
std::vector<std::uint64_t> sample_rows(
    std::uint64_t rows, std::uint64_t count, std::uint64_t seed) {
  core::Rng rng(seed);
  std::vector<std::uint64_t> chosen;
  chosen.reserve(count);
  // Draw one row from each of `count` equal ranges, which spreads them and reads the store in
  // order.
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto edge = [&](std::uint64_t part) {
      return static_cast<std::uint64_t>(static_cast<unsigned __int128>(rows) * part / count);
    };
    chosen.push_back(edge(i) + rng.below(edge(i + 1) - edge(i)));
  }
  return chosen;
}

std::vector<float> gather(
    std::span<const Half> keys, std::uint64_t width, const std::vector<std::uint64_t>& rows) {
  std::vector<float> out(rows.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i)
    to_float(&keys[rows[i] * width], std::span(out).subspan(i * width, width));
  return out;
}

std::string name_of(const SourcePart& part) { return fmt::format("{}/{}", part.number, part.of); }

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : core::dump(value);
}

// Formats a difference: "no --stride, now it is 128", or "--stride 64, now it is none".
std::string option_change(const std::string& name, const Json& before, const Json& now) {
  const auto open = [](const Json& value) { return value.is_null() || text_of(value).empty(); };
  const std::string was =
      open(before) ? "no --" + name : fmt::format("--{} {}", name, text_of(before));
  return fmt::format("{}, now {}", was, open(now) ? "none" : text_of(now));
}

// Describes how a command in progress differs from this one, in terms of options. `plan` is `now`
// with names.
std::string difference(const Json& begun, const Json& now, const Plan& plan) {
  const auto differs = [&](const char* key) { return begun.value(key, Json()) != now.at(key); };
  if (differs("data")) return "another FILE than " + plan.data_name;
  if (differs("model") || differs("width") || differs("vocabulary"))
    return "another --model than " + plan.model_name;
  if (differs("tokenizer")) return "another tokenizer than that of " + plan.model_name;
  for (const char* key : {"metric", "index"})
    if (differs(key)) return option_change(key, begun.value(key, Json()), now.at(key));
  if (begun.contains("merge") != now.contains("merge"))
    return begun.contains("merge") ? "store merge" : "build-datastore";
  for (const char* key : {"part", "keys", "prune", "key-scale"})
    if (begun.value(key, Json()) != now.value(key, Json()))
      return option_change(key, begun.value(key, Json()), now.value(key, Json()));
  if (differs("generation")) return "an earlier state of the store";
  const Json before = begun.value("windows", Json()), windows = now.at("windows");
  for (const Json& all : {windows, before})
    for (const auto& [key, value] : all.items()) {
      const Json was = before.value(key, Json()), is = windows.value(key, Json());
      if (was == is) continue;
      std::string name = key;
      std::ranges::replace(name, '_', '-');
      if (name == "unit") return "another kind of FILE than " + plan.data_name;
      if (name == "reach")
        return fmt::format("another layer memory ('{}'), now '{}'", text_of(was), text_of(is));
      return option_change(name, was, is);
    }
  return "other options";
}

Json but_for_scale(Json plan) {
  if (plan.is_object()) plan.erase("key-scale");
  return plan;
}

}  // namespace

void expect_possible(const Plan& plan, std::uint64_t rows) {
  const std::uint64_t pca = plan.reduction.pca;
  if (pca >= plan.width)
    core::bad_usage("--keys pca:{}: takes fewer dimensions than a key has, {}", pca, plan.width);
  if (plan.reduction.drop_keys && plan.index == "exact")
    core::bad_usage("--keys none: --index exact searches the keys; give another index");
  if (plan.reduction.drop_keys && rows == 0)
    core::bad_usage("--keys none: no index can be made of a text without entries");
  if (!plan.index.empty() && plan.index != "exact")
    Index::make(plan.index, pca > 0 ? pca : plan.width, plan.metric);
}

std::string file_name(const Manifest& manifest, std::string_view stem, std::string_view ending) {
  if (manifest.generation == 1) return fmt::format("{}.{}", stem, ending);
  return fmt::format("{}.{}.{}", stem, manifest.generation, ending);
}

core::Digest row_digest(std::span<const Half> key, std::int32_t label) {
  const std::uint64_t key_hash = core::hash64(std::as_bytes(key));
  std::array<std::uint64_t, 2> both{key_hash, static_cast<std::uint32_t>(label)};
  return core::hash128(std::as_bytes(std::span(both)));
}

std::unique_ptr<Index> train_index(const std::string& factory, std::span<const Half> keys,
    std::uint64_t width, Metric metric, const ProgressCallback& watch) {
  auto index = Index::make(factory, width, metric);
  const std::uint64_t rows = keys.size() / width, sample = std::min(index->training_rows(), rows);
  report(watch, "training the index", 0, sample);
  index->train(gather(keys, width, sample_rows(rows, sample, 1)));
  return index;
}

void add_rows(Index& index, std::span<const Half> keys, std::uint64_t width, std::uint64_t from,
    const ProgressCallback& watch) {
  const std::uint64_t rows = keys.size() / width;
  const std::uint64_t batch = std::max<std::uint64_t>(1, kBatchBytes / (width * 4));
  std::vector<float> floats;
  for (std::uint64_t begin = from; begin < rows; begin += batch) {
    report(watch, "indexing", begin, rows);
    const std::uint64_t n = std::min(batch, rows - begin);
    floats.resize(n * width);
    to_float(&keys[begin * width], floats);
    index.add(floats);
  }
}

Recall measure_recall(const Index& index, std::span<const Half> keys, std::uint64_t width,
    Metric metric, std::int64_t queries, std::int64_t k, std::int64_t nprobe) {
  const std::uint64_t rows = keys.size() / width;
  Recall recall;
  recall.k = std::min(k, static_cast<std::int64_t>(rows));
  recall.nprobe = nprobe;
  recall.queries = std::min(queries, static_cast<std::int64_t>(rows));
  if (rows == 0) return recall;
  const auto asked =
      gather(keys, width, sample_rows(rows, static_cast<std::uint64_t>(recall.queries), 1));
  const auto n = static_cast<std::size_t>(recall.queries * recall.k);
  std::vector<std::int64_t> found(n), nearest(n);
  std::vector<float> scores(n);
  index.search(asked, recall.k, nprobe, found, scores);
  ExactSearch(keys, static_cast<std::int64_t>(width), metric)
      .search(asked, recall.k, 0, nearest, scores);
  std::uint64_t hits = 0;
  const auto kept = static_cast<std::size_t>(recall.k);
  for (std::size_t q = 0; q < n; q += kept) {
    std::sort(&nearest[q], &nearest[q] + kept);
    for (std::size_t i = q; i < q + kept; ++i)
      hits += std::binary_search(&nearest[q], &nearest[q] + kept, found[i]) ? 1 : 0;
  }
  recall.recall = static_cast<double>(hits) / static_cast<double>(n);
  return recall;
}

Builder::Builder(std::string folder, Plan plan, bool append)
    : folder_(std::move(folder)), plan_(std::move(plan)), append_(append) {
  if (append_) read_manifest(folder_);  // throws if there is no complete store
  lock_.emplace(folder_, core::FolderLock::kHeld,
      append_ ? core::FolderLock::Absent::refused : core::FolderLock::Absent::made);
  expect_free(folder_);
  expect_no_removal(folder_);
  const bool there = fs::exists(folder_ + "/" + kManifestName);
  if (append_ || there) base_ = read_manifest(folder_);
  if (append_ && (!base_.keyed() || plan_.reduction.drop_keys))
    core::bad_usage("{}: --append cannot be combined with --keys none; build a new store{}",
        folder_, base_.keyed() ? "" : ", since its keys were not kept");
  if (there) {
    if (plan_.model != base_.model)
      core::bad_data(
          "{}: was built with the model {}, not with {}", folder_, base_.model, plan_.model);
    if (plan_.tokenizer != base_.tokenizer)
      core::bad_data("{}: was built with the tokenizer '{}', not with '{}'", folder_,
          base_.tokenizer, plan_.tokenizer);
    for (const Source& source : base_.sources) {
      const bool same_text = source.data == plan_.data && source.windows == plan_.windows;
      complete_ = complete_ || (same_text && source.part == plan_.part);
      if (same_text && !append_ && source.part && plan_.part && source.part != plan_.part)
        core::bad_usage(
            "{}: is part {} of the text, not part {}; finish it as that part, or remove it",
            folder_, name_of(*source.part), name_of(*plan_.part));
    }
    const std::uint64_t pca = base_.projected() ? base_.width : 0;
    const bool same = plan_.width == base_.query_width() && plan_.metric == base_.metric &&
                      (plan_.index.empty() || plan_.index == base_.index || base_.rows == 0) &&
                      (plan_.reduction.pca == pca || (append_ && plan_.reduction.pca == 0)) &&
                      plan_.reduction.merge_neighbours == base_.merge_neighbours &&
                      plan_.reduction.drop_keys == !base_.keyed() &&
                      plan_.key_scale == base_.key_scale;
    if (!append_ && (!complete_ || !same))
      core::bad_usage(
          "{}: contains a store of other data or options; use --append to add to it", folder_);
    if (!same)
      core::bad_usage("{}: has keys of width {}{}{}, metric {}, index {}; append with the same",
          folder_, base_.query_width(), pca > 0 ? fmt::format(" with --keys pca:{}", pca) : "",
          base_.scaled() ? fmt::format(" with --key-scale {}", base_.key_scale) : "",
          name_of(base_.metric), base_.index);
    plan_.index = base_.index;
    if (append_ && !complete_) expect_new_text();
    if (append_ && base_.weighted())
      core::bad_usage(
          "{}: its entries were merged with --prune; rebuild it from all texts", folder_);
    if (append_ && base_.rows > 0 && plan_.leaves_out == base_.whole())
      core::bad_usage("{}: {}; append with the same option", folder_,
          base_.whole() ? "was built without --skip-known" : "was built with --skip-known");
  }
  if (complete_) {
    remove_stale_files(folder_, base_);
    return;
  }
  if (append_) Datastore{folder_};  // refuse a store that readers would refuse
  resume();
}

void Builder::expect_new_text() const {
  Source planned{.data = plan_.data, .rows = 1, .windows = plan_.windows, .shards = plan_.shards};
  for (SourceShard& shard : planned.shards) shard.rows = shard.documents;  // or fewer
  for (const Source& source : base_.sources)
    if (source.rows > 0 && overlap(planned, source))
      core::bad_usage(
          "{}: already contains text of {}, which would count twice", folder_, plan_.data_name);
}

Json Builder::plan_json() const {
  Json json{{"model", plan_.model}, {"tokenizer", plan_.tokenizer}, {"width", plan_.width},
      {"vocabulary", plan_.vocabulary}, {"metric", name_of(plan_.metric)}, {"index", plan_.index},
      {"data", plan_.data}, {"windows", plan_.windows},
      {"generation", append_ ? base_.generation + 1 : 1}};
  if (plan_.part) json["part"] = name_of(*plan_.part);
  if (plan_.merges) json["merge"] = true;
  if (plan_.key_scale != 1) json["key-scale"] = plan_.key_scale;
  if (const auto& how = plan_.reduction; how.pca > 0) json["keys"] = fmt::format("pca:{}", how.pca);
  if (plan_.reduction.drop_keys) json["keys"] = "none";
  if (const auto& how = plan_.reduction; how.merge_neighbours > 0)
    json["prune"] = fmt::format("merge:{}", how.merge_neighbours);
  return json;
}

void Builder::resume() {
  const Json plan = plan_json();
  if (auto begun = read_progress(folder_)) {
    // The message for keys beyond float16 asks for another scale of the same command.
    if (begun->rows == base_.rows && but_for_scale(begun->plan) == but_for_scale(plan))
      begun->plan = plan;
    if (begun->plan != plan)
      core::bad_usage("{}: was begun with {}; rerun with that, or remove {}", folder_,
          difference(begun->plan, plan, plan_), kProgressName);
    progress_ = std::move(*begun);
    if (progress_.rows < base_.rows)
      core::bad_value(folder_ + "/" + std::string(kProgressName), "\"rows\"", progress_.rows,
          fmt::format("the store's {} and more", base_.rows));
  } else {
    progress_.plan = plan;
    progress_.rows = base_.rows;
    progress_.digest = base_.digest;
  }
  write_progress(folder_, progress_);  // must be first: it identifies the owner of the arrays
  if (base_.projected())
    projection_ = read_projection(folder_ + "/" + base_.projection_file, base_.model_width,
        base_.width, base_.projection_hash);
  keys_.emplace(folder_ + "/" + base_.keys_file, "<f2", progress_.rows,
      projection_.any() ? base_.width : plan_.width, true);
  values_.emplace(folder_ + "/" + base_.values_file, "<i4", progress_.rows, 1, false);
  if (!plan_.leaves_out) base_.places_file.clear();  // the store has no rows
  if (!plan_.leaves_out) return;
  if (base_.places_file.empty()) base_.places_file = "places.npy";
  const std::string places = folder_ + "/" + base_.places_file;
  if (base_.rows > 0)
    places_before_ =
        NpyArray(places, "<i8", base_.rows, 1, false).values<std::int64_t>().back() + 1;
  places_.emplace(places, "<i8", progress_.rows, 1, false);
}

// Converts scaled keys to float16.
void Builder::expect_in_range(std::span<const float> keys) const {
  float most = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!std::isfinite(keys[i]))
      core::bad_data("{}: the key of row {} is not finite; is the model damaged?", folder_,
          progress_.rows + added_ + i / plan_.width);
    most = std::max(most, std::abs(keys[i]));
  }
  if (most * plan_.key_scale <= kMostHalf) return;
  // Suggest a scale with four times the room, because later keys may be longer.
  const double fits = std::exp2(std::floor(std::log2(kMostHalf / (4.0 * most))));
  if (!is_key_scale(fits))
    core::bad_data(
        "{}: keys reach {:.4g}, beyond any --key-scale; is the model damaged?", folder_, most);
  core::bad_data(
      "{}: keys reach {:.4g}, beyond the range of float16, {}, with --key-scale {}; rebuild the "
      "store with --key-scale {}",
      folder_, most, kMostHalf / plan_.key_scale, plan_.key_scale, fits);
}

void Builder::add(std::span<const float> all, std::span<const std::int32_t> labels,
    std::span<const std::int64_t> places) {
  expect_in_range(all);
  const auto keys = scaled(all, plan_.key_scale, scaled_);
  if (places.size() != (plan_.leaves_out ? labels.size() : 0))
    core::bug("{} places of {} rows", places.size(), labels.size());
  std::vector<float> projected;
  if (projection_.any()) projected = projection_.apply(keys);
  const auto stored = projection_.any() ? std::span<const float>(projected) : keys;
  halves_.resize(stored.size());
  to_half(stored.data(), halves_);
  add(std::span<const Half>(halves_), labels);
  if (!plan_.leaves_out) return;
  moved_.assign(places.begin(), places.end());
  for (std::int64_t& place : moved_) place += places_before_;
  places_->write(std::span<const std::int64_t>(moved_));
}

void Builder::add(std::span<const Half> keys, std::span<const std::int32_t> labels) {
  const std::size_t width = projection_.any() ? projection_.to() : plan_.width;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto key = keys.subspan(i * width, width);
    if (!std::ranges::all_of(key, finite))
      core::bad_data(
          "{}: the key of row {} is not finite in float16", folder_, progress_.rows + added_ + i);
    if (labels[i] < 0 || static_cast<std::uint64_t>(labels[i]) >= plan_.vocabulary)
      core::bad_data(
          "{}: label {} is outside the vocabulary of {}", folder_, labels[i], plan_.vocabulary);
    progress_.digest.append(row_digest(key, labels[i]));
  }
  keys_->write(keys);
  values_->write(labels);
  added_ += labels.size();
}

void Builder::commit(Json place) {
  keys_->commit();
  values_->commit();
  if (places_) places_->commit();
  progress_.rows += std::exchange(added_, 0);
  progress_.place = std::move(place);
  write_progress(folder_, progress_);
}

// Returns the index of the store that is appended to, with the new rows.
std::unique_ptr<Index> Builder::extended_index(
    const Manifest& manifest, std::span<const Half> keys, const ProgressCallback& watch) const {
  const core::MappedFile file(folder_ + "/" + base_.index_file);
  if (core::hash128(file.bytes()).hex() != base_.index_hash)
    core::bad_data("{}: corrupt file: checksum mismatch", file.name());
  auto index = Index::parse(file.bytes(), file.name(), base_.width, base_.metric, base_.rows);
  add_rows(*index, keys, manifest.width, base_.rows, watch);
  return index;
}

// Makes the index that the manifest names. `resumes` keeps the trained index on disk until the
// store is complete.
std::unique_ptr<Index> Builder::make_index(const Manifest& manifest, std::span<const Half> keys,
    bool resumes, const ProgressCallback& watch) {
  const std::string trained = folder_ + "/" + kTrainedName;
  std::unique_ptr<Index> index;
  if (resumes && !progress_.trained_hash.empty() && fs::exists(trained)) {
    const core::MappedFile file(trained);
    if (core::hash128(file.bytes()).hex() == progress_.trained_hash)
      index = Index::parse(file.bytes(), trained, manifest.width, manifest.metric, 0);
  }
  if (!index) {
    index = train_index(manifest.index, keys, manifest.width, manifest.metric, watch);
    if (resumes) {
      progress_.trained_hash = index->write(trained).hex();
      write_progress(folder_, progress_);
    }
  }
  add_rows(*index, keys, manifest.width, 0, watch);
  return index;
}

// Writes the index that the manifest names. If it was not chosen by the user, writes the first that
// has enough recall and makes the manifest name it.
void Builder::write_index(
    Manifest& manifest, std::span<const Half> keys, const ProgressCallback& watch) {
  constexpr std::int64_t kAllLists = 1 << 20;
  std::vector<std::string> choices = {manifest.index};
  if (!append_ && plan_.index.empty())
    choices = index_choices(manifest.rows, manifest.width, !plan_.reduction.drop_keys);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    manifest.index = choices[i];
    if (manifest.exact()) return;
    // Only the first choice resumes: a resumed command makes the same choices again.
    const auto index =
        append_ ? extended_index(manifest, keys, watch) : make_index(manifest, keys, i == 0, watch);
    const auto recall_at = [&](std::int64_t nprobe) {
      report(watch, "measuring recall", 0, kRecallQueries);
      return measure_recall(
          *index, keys, manifest.width, manifest.metric, kRecallQueries, kRecallNeighbours, nprobe);
    };
    const Recall recall = recall_at(kRecallProbes);
    const bool last = i + 1 == choices.size();
    if (last || recall.recall >= kEnoughRecall) {
      manifest.recall = recall;
      manifest.index_file = file_name(manifest, "index", "faiss");
      manifest.index_hash = index->write(folder_ + "/" + manifest.index_file).hex();
      return;
    }
    // Larger codes do not find keys that are outside the lists searched.
    if (!plan_.reduction.drop_keys && recall.recall < kEnoughRecall * recall_at(kAllLists).recall) {
      choices.resize(i + 1);
      choices.emplace_back("exact");
    }
  }
}

// Converts positions to rows.
std::vector<std::int64_t> Builder::first_rows(
    std::span<const std::int64_t> first, const Manifest& manifest) const {
  std::vector<std::int64_t> found(first.begin(), first.end());
  if (manifest.whole()) {
    for (std::int64_t& row : found) row += static_cast<std::int64_t>(base_.rows);
    return found;
  }
  const NpyArray array(folder_ + "/" + manifest.places_file, "<i8", manifest.rows, 1, false);
  const auto places = array.values<std::int64_t>();
  for (std::int64_t& row : found)
    row = std::lower_bound(places.begin() + static_cast<std::ptrdiff_t>(base_.rows), places.end(),
              row + places_before_) -
          places.begin();
  return found;
}

// Returns the plan's shards with the numbers of rows of their documents. `first` holds the first
// row of each added document, up to `end`.
std::vector<SourceShard> Builder::shards(
    std::span<const std::int64_t> first, std::uint64_t end) const {
  auto shards = plan_.shards;
  if (shards.empty()) shards.push_back({plan_.data, 0, first.size()});
  std::size_t document = 0;
  const auto row_of = [&] {
    if (document == 0) return base_.rows;
    return document < first.size() ? static_cast<std::uint64_t>(first[document]) : end;
  };
  for (SourceShard& shard : shards) {
    const std::uint64_t begin = row_of();
    document += shard.documents;
    shard.rows = row_of() - begin;
  }
  return shards;
}

// Returns the names of the store's documents followed by those of the added ones.
void Builder::write_document_names(Manifest& manifest, std::size_t added) const {
  const bool names = plan_.names.size() == added && added > 0;
  if (!names && !base_.named()) return;
  std::vector<std::string> all(base_.documents);
  if (base_.named())
    all = shard::read_names(folder_ + "/" + base_.names_file, base_.documents, base_.names_hash);
  if (names) all.insert(all.end(), plan_.names.begin(), plan_.names.end());
  all.resize(manifest.documents);
  manifest.names_file = file_name(manifest, "names", "txt");
  manifest.names_hash = shard::write_names(folder_ + "/" + manifest.names_file, all);
}

// Makes the manifest name no keys, which the commit then deletes. The digest can no longer be
// checked, so the labels get a hash of their own.
void Builder::drop_keys(Manifest& manifest) const {
  const NpyArray values(folder_ + "/" + manifest.values_file, "<i4", manifest.rows, 1, false);
  manifest.values_hash = core::hash128(std::as_bytes(values.values<std::int32_t>())).hex();
  manifest.keys_file.clear();
}

Manifest Builder::finish(std::span<const std::int64_t> first, const ProgressCallback& watch,
    const std::function<void(Manifest&)>& complete) {
  if (added_ > 0) core::bug("rows were added and not committed");
  if (rows() == 0) {  // no commit() was made
    keys_->commit(), values_->commit();
    if (places_) places_->commit();
  }
  Manifest manifest = base_;
  if (append_) {
    ++manifest.generation;
  } else {
    manifest.model = plan_.model, manifest.tokenizer = plan_.tokenizer;
    manifest.width = plan_.width, manifest.metric = plan_.metric;
    manifest.key_scale = plan_.key_scale;
  }
  manifest.vocabulary = std::max(manifest.vocabulary, plan_.vocabulary);
  manifest.rows = progress_.rows;
  manifest.digest = progress_.digest;
  manifest.documents += first.size();
  manifest.sources.push_back({plan_.data, rows(), first.size(), plan_.windows, plan_.part});
  if (!manifest.whole()) {
    const NpyArray places(folder_ + "/" + manifest.places_file, "<i8", manifest.rows, 1, false);
    manifest.places_hash = core::hash128(std::as_bytes(places.values<std::int64_t>())).hex();
  }

  auto documents = first_rows(first, manifest);
  if (plan_.reduction.any() && !append_)
    reduce(folder_, plan_.reduction, manifest, documents, watch);
  manifest.sources.back().shards = shards(documents, manifest.rows);
  if (!append_) {
    manifest.index = plan_.index.empty()
                         ? default_index(manifest.rows, manifest.width, !plan_.reduction.drop_keys)
                         : plan_.index;
    if (manifest.rows == 0) manifest.index = "exact";  // other indices are trained on rows
  }
  const std::string documents_path = folder_ + "/" + manifest.documents_file;
  {
    NpyWriter writer(documents_path, "<i8", base_.documents, 1, false);
    writer.write(std::span<const std::int64_t>(documents));
    writer.commit();
  }
  const NpyArray all(documents_path, "<i8", manifest.documents, 1, false);
  manifest.documents_hash = core::hash128(std::as_bytes(all.values<std::int64_t>())).hex();

  write_document_names(manifest, first.size());
  const NpyArray stored(
      folder_ + "/" + manifest.keys_file, "<f2", manifest.rows, manifest.width, true);
  const auto keys = stored.values<Half>();
  manifest.index_file.clear(), manifest.index_hash.clear();
  manifest.recall = Recall{kRecallNeighbours, 0, 0, 1};
  if (!manifest.exact()) write_index(manifest, keys, watch);
  if (plan_.reduction.drop_keys && manifest.rows > 0) drop_keys(manifest);
  if (complete) complete(manifest);
  core::sync_folder(folder_);
  write_manifest(folder_, manifest);
  remove_stale_files(folder_, manifest);
  return manifest;
}

}  // namespace store
