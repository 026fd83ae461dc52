#include "infer/stores/stores.h"

#include "infer/stores/device_search.h"
#include "nn/base/cuda.h"

namespace infer {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMostHits = 1 << 24;  // of a search for more neighbours

// [begin, end), ascending.
using RowRanges = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Returns the rows of a store that belong to one of these texts or shards.
RowRanges rows_of(const store::Manifest& manifest, const shard::Fingerprints& texts) {
  RowRanges found;
  const auto take = [&](std::int64_t begin, std::uint64_t rows) {
    if (rows == 0) return;
    const std::int64_t end = begin + static_cast<std::int64_t>(rows);
    if (!found.empty() && found.back().second == begin) found.back().second = end;
    else found.emplace_back(begin, end);
  };
  std::int64_t begin = 0;
  for (const auto& source : manifest.sources) {
    std::int64_t of_shard = begin;
    const bool whole = texts.contains(source.data);
    if (whole) take(begin, source.rows);
    for (const auto& shard : source.shards) {
      if (!whole && texts.contains(shard.data)) take(of_shard, shard.rows);
      of_shard += static_cast<std::int64_t>(shard.rows);
    }
    begin += static_cast<std::int64_t>(source.rows);
  }
  return found;
}

std::int64_t size_of(const RowRanges& ranges) {
  return core::sum_of(ranges, [](const auto& range) { return range.second - range.first; });
}

// Returns whether entries of these texts may have been merged with entries of other shards, so that
// rows_of() cannot tell them apart.
bool has_merged(const store::Manifest& manifest, const shard::Fingerprints& texts) {
  const auto of_texts = [&](const auto& one) { return texts.contains(one.data); };
  return manifest.weighted() && std::ranges::any_of(manifest.sources, [&](const auto& source) {
    return !of_texts(source) && std::ranges::any_of(source.shards, of_texts);
  });
}

// Copies hit i of `from` to hit `at` of `to`, which may be the same object.
void put_hit(store::Hits& to, std::size_t at, const store::Hits& from, std::size_t i) {
  to.ids[at] = from.ids[i], to.scores[at] = from.scores[i], to.labels[at] = from.labels[i];
  if (!to.weights.empty()) to.weights[at] = from.weights[i];
}

// Removes hidden rows from each query's hits and closes the gaps. Returns the queries with fewer
// than k hits left, for which a search for more neighbours may find more.
std::vector<std::int64_t> leave_out(const RowRanges& hidden, store::Hits& hits, std::int64_t k) {
  const auto shown = [&](std::int64_t row) {
    return row >= 0 && std::none_of(hidden.begin(), hidden.end(), [row](const auto& range) {
      return row >= range.first && row < range.second;
    });
  };
  std::vector<std::int64_t> lacking;
  const auto each = static_cast<std::size_t>(hits.k);
  for (std::size_t begin = 0; begin < hits.ids.size(); begin += each) {
    const std::size_t end = begin + each;
    const bool all_there_is = hits.ids[end - 1] < 0;
    std::size_t to = begin;
    for (std::size_t i = begin; i < end; ++i)
      if (shown(hits.ids[i])) put_hit(hits, to++, hits, i);
    if (!all_there_is && static_cast<std::int64_t>(to - begin) < k)
      lacking.push_back(static_cast<std::int64_t>(begin / each));
    for (; to < end; ++to) {
      hits.ids[to] = -1, hits.labels[to] = -1, hits.scores[to] = kNothing;
      if (!hits.weights.empty()) hits.weights[to] = 1;
    }
  }
  return lacking;
}

// Returns some of the queries (n, width).
std::vector<float> chosen(
    std::span<const float> queries, std::size_t width, std::span<const std::int64_t> which) {
  std::vector<float> some;
  for (const std::int64_t i : which) {
    const auto query = queries.subspan(static_cast<std::size_t>(i) * width, width);
    some.insert(some.end(), query.begin(), query.end());
  }
  return some;
}

// Returns the weights of what two stores found, or undefined if neither has weights.
Tensor both_weights(const Neighbours& a, const Neighbours& b) {
  if (!a.log_weights.defined() && !b.log_weights.defined()) return {};
  const auto of = [](const Neighbours& one) {
    return one.log_weights.defined() ? one.log_weights : torch::zeros_like(one.scores);
  };
  return torch::cat({of(a), of(b)}, 1);
}

void expect_label(
    const store::Store& store, std::int64_t row, std::int64_t label, std::int64_t vocabulary) {
  if (label < 0 || label >= vocabulary)
    core::bad_data(
        "{}: damaged: row {} has the label {} of {}", store.name(), row, label, vocabulary);
}

void expect_together(const store::Store& a, const store::Store& b) {
  if (a.metric() != b.metric())
    core::bad_usage(
        "{} has metric {}, {} has {}; stores that are searched together need the same metric",
        a.name(), name_of(a.metric()), b.name(), name_of(b.metric()));
  if (a.metric() == store::Metric::l2 && a.width() != b.width())
    core::bad_usage(
        "{} has keys of width {}, {} of {}; with metric l2, all stores need the same width",
        a.name(), a.width(), b.name(), b.width());
  for (const auto& one : a.manifest().sources)
    for (const auto& other : b.manifest().sources)
      if (store::overlap(one, other))
        core::bad_usage(
            "{} and {} contain the same text {}, which would count twice; leave one out", a.name(),
            b.name(), one.data);
}

}  // namespace

std::vector<std::unique_ptr<const store::Store>> open_each(
    const std::vector<std::string>& folders, const Tensor& like) {
  DeviceRoom room = device_room(like.device());
  std::vector<std::unique_ptr<const store::Store>> stores;
  for (const auto& folder : folders) {
    auto store = std::make_unique<store::Datastore>(folder);
    if (!nn::in_host_memory(like)) search_on(*store, like.device(), room);
    stores.push_back(std::move(store));
  }
  return stores;
}

Stores::Stores(std::vector<std::unique_ptr<const store::Store>> stores, const std::string& model,
    const std::string& tokenizer, const std::string& name, std::int64_t width,
    std::int64_t vocabulary)
    : stores_(std::move(stores)), width_(width), vocabulary_(vocabulary) {
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    const store::Store& store = *stores_[i];
    store.expect_model(model, tokenizer, name);
    if (store.query_width() != width)
      core::bad_data("{}: has keys of width {}, but the keys of {} have {}", store.name(),
          store.query_width(), name, width);
    for (std::size_t j = 0; j < i; ++j) expect_together(*stores_[j], store);
  }
}

Stores::Stores(std::vector<std::unique_ptr<const store::Store>> stores, const model::Loaded& loaded)
    : Stores(std::move(stores), loaded.fingerprint.hex(),
          model::tokenizer_fingerprint(loaded.tokenizer), loaded.folder,
          loaded.model->architecture->d_key(), loaded.model->vocabulary) {}

Neighbours Stores::neighbours(std::size_t store, store::Hits hits) const {
  const store::Store& datastore = *stores_[store];
  const std::int64_t k = hits.k, n = static_cast<std::int64_t>(hits.ids.size()) / k;
  for (std::size_t i = 0; i < hits.ids.size(); ++i)
    if (hits.labels[i] != -1 || hits.ids[i] >= 0)
      expect_label(datastore, hits.ids[i], hits.labels[i], vocabulary_);
  Neighbours found;
  found.scores = torch::from_blob(hits.scores.data(), {n, k}, torch::kFloat32).clone();
  found.labels = torch::from_blob(hits.labels.data(), {n, k}, torch::kInt32).to(torch::kInt64);
  found.rows = torch::from_blob(hits.ids.data(), {n, k}, torch::kInt64).clone();
  found.stores = torch::where(
      found.rows < 0, found.rows, torch::full_like(found.rows, static_cast<std::int64_t>(store)));
  if (!hits.weights.empty())
    found.log_weights =
        torch::from_blob(hits.weights.data(), {n, k}, torch::kInt32).to(torch::kFloat32).log_();
  return found;
}

std::vector<store::Hits> Stores::search_all(
    std::span<const float> queries, const store::SearchOptions& options) const {
  return core::mapped(stores_, [&](const auto& store) { return store->search(queries, options); });
}

store::Hits Stores::search_one(
    std::size_t store, std::span<const float> queries, const store::SearchOptions& options) const {
  return stores_[store]->search(queries, options);
}

// If hidden rows took places, the search is repeated with twice as many neighbours, and so on.
void Stores::hide(std::size_t store, const shard::Fingerprints& own, std::span<const float> queries,
    store::SearchOptions options, store::Hits& hits) const {
  const RowRanges hidden = rows_of(stores_[store]->manifest(), own);
  if (hidden.empty()) return;
  const std::int64_t k = std::min(options.k, stores_[store]->size() - size_of(hidden));
  const std::int64_t most = std::min(k + size_of(hidden), store::kMostNeighbours);
  const auto width = static_cast<std::size_t>(width_), each = static_cast<std::size_t>(hits.k);
  auto lacking = leave_out(hidden, hits, k);
  while (!lacking.empty() && options.k < most) {
    options.k = std::min(2 * options.k, most);
    const auto step = static_cast<std::size_t>(std::max<std::int64_t>(1, kMostHits / options.k));
    std::vector<std::int64_t> still;
    for (std::size_t begin = 0; begin < lacking.size(); begin += step) {
      const auto some = std::span(lacking).subspan(begin, std::min(step, lacking.size() - begin));
      auto wider = search_one(store, chosen(queries, width, some), options);
      for (const std::int64_t i : leave_out(hidden, wider, k))
        still.push_back(some[static_cast<std::size_t>(i)]);
      for (std::size_t i = 0; i < some.size(); ++i)
        for (std::size_t j = 0; j < each; ++j)
          put_hit(hits, static_cast<std::size_t>(some[i]) * each + j, wider,
              i * static_cast<std::size_t>(wider.k) + j);
    }
    lacking = std::move(still);
  }
}

Neighbours Stores::search(const Tensor& queries, std::int64_t k, std::int64_t nprobe, bool rescore,
    const shard::Fingerprints& own) const {
  const torch::NoGradGuard no_gradient;
  const Tensor rows = queries.to(torch::kCPU, torch::kFloat32).contiguous();
  const std::span<const float> numbers(
      rows.const_data_ptr<float>(), static_cast<std::size_t>(rows.numel()));
  store::SearchOptions options;
  options.k = k, options.nprobe = nprobe, options.rescore = rescore;
  options.threads = at::get_num_threads();
  auto found = search_all(numbers, options);
  for (std::size_t i = 0; i < stores_.size(); ++i) hide(i, own, numbers, options, found[i]);
  Neighbours all = neighbours(0, std::move(found[0]));
  if (stores_.size() == 1) return all;
  for (std::size_t i = 1; i < stores_.size(); ++i) {
    const Neighbours more = neighbours(i, std::move(found[i]));
    all = {torch::cat({all.scores, more.scores}, 1), torch::cat({all.labels, more.labels}, 1),
        torch::cat({all.rows, more.rows}, 1), torch::cat({all.stores, more.stores}, 1),
        both_weights(all, more)};
  }
  return all.best(k);
}

Neighbours Stores::at(
    const Tensor& queries, std::span<const std::span<const StoreRow>> rows, std::int64_t k) const {
  const torch::NoGradGuard no_gradient;
  const Tensor numbers = queries.to(torch::kCPU, torch::kFloat32).contiguous();
  const auto width = static_cast<std::size_t>(width_);
  std::size_t most = static_cast<std::size_t>(k);
  for (const auto& some : rows) most = std::max(most, some.size());
  const auto n = std::ssize(rows);
  Neighbours all = no_neighbours(n, static_cast<std::int64_t>(most));
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> labels(most);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto some = rows[static_cast<std::size_t>(i)];
    const std::span query(numbers.const_data_ptr<float>() + i * width_, width);
    auto* score = all.scores.data_ptr<float>() + i * all.scores.size(1);
    auto* label = all.labels.data_ptr<std::int64_t>() + i * all.labels.size(1);
    auto* row = all.rows.data_ptr<std::int64_t>() + i * all.rows.size(1);
    auto* of = all.stores.data_ptr<std::int64_t>() + i * all.stores.size(1);
    // Adjacent rows of one store are scored together.
    for (std::size_t begin = 0, end = 0; begin < some.size(); begin = end) {
      ids.clear();
      for (; end < some.size() && some[end].store == some[begin].store; ++end) {
        ids.push_back(some[end].row);
        row[end] = some[end].row, of[end] = some[end].store;
      }
      const store::Store& store = *stores_[static_cast<std::size_t>(some[begin].store)];
      store.score(query, ids, {score + begin, ids.size()}, std::span(labels).first(ids.size()));
      for (std::size_t j = begin; j < end; ++j) {
        label[j] = labels[j - begin];
        expect_label(store, row[j], label[j], vocabulary_);
      }
    }
  }
  return all.best(k);
}

void Stores::expect_rescorable() const {
  for (const auto& store : stores_) store->expect_rescorable();
}

void Stores::expect_followable() const {
  for (const auto& store : stores_) store->expect_followable();
}

std::string Stores::signature() const {
  const auto name = [](const auto& store) { return store->fingerprint().substr(0, 12); };
  return fmt::format("{}", fmt::join(core::mapped(stores_, name), "+"));
}

bool Stores::hold(const shard::Fingerprints& texts) const {
  return std::any_of(stores_.begin(), stores_.end(),
      [&](const auto& store) { return !rows_of(store->manifest(), texts).empty(); });
}

std::vector<std::string> Stores::that_merged(const shard::Fingerprints& own) const {
  std::vector<std::string> names;
  for (const auto& store : stores_)
    if (has_merged(store->manifest(), own)) names.push_back(store->name());
  return names;
}

std::shared_ptr<const Stores> store_alone(
    std::unique_ptr<store::Datastore> store, const model::Loaded& loaded) {
  const Tensor like = loaded.model->head->weights().at(0);
  DeviceRoom room = device_room(like.device());
  if (!nn::in_host_memory(like)) search_on(*store, like.device(), room);
  std::vector<std::unique_ptr<const store::Store>> stores;
  stores.push_back(std::move(store));
  return std::make_shared<const Stores>(std::move(stores), loaded);
}

std::shared_ptr<const Stores> open_stores(
    const std::vector<std::string>& folders, const model::Loaded& loaded) {
  if (folders.empty()) return nullptr;
  return std::make_shared<const Stores>(
      open_each(folders, loaded.model->head->weights().at(0)), loaded);
}

}  // namespace infer
