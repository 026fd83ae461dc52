#include "infer/stores/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "infer/stores/device_search.h"
#include "nn/base/cuda.h"
#include "store/datastore.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Rows [begin, end) of a store that are of a text.
std::vector<std::pair<std::int64_t, std::int64_t>> rows_of(const store::Manifest& manifest,
                                                           const std::string& data) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  std::int64_t begin = 0;
  for (const auto& source : manifest.sources) {
    const std::int64_t end = begin + static_cast<std::int64_t>(source.rows);
    if (!data.empty() && source.data == data) found.emplace_back(begin, end);
    begin = end;
  }
  return found;
}

// The best k of each row; of equals the first stays first.
Neighbours best(const Neighbours& all, std::int64_t k) {
  const Tensor order =
      std::get<1>(torch::sort(all.scores, /*stable=*/true, 1, true)).slice(1, 0, k);
  const auto take = [&](const Tensor& tensor) { return tensor.gather(1, order); };
  return {take(all.scores), take(all.labels), take(all.rows), take(all.stores),
          all.log_weights.defined() ? take(all.log_weights) : Tensor()};
}

// Of what two stores found; undefined where neither has any.
Tensor both_weights(const Neighbours& a, const Neighbours& b) {
  if (!a.log_weights.defined() && !b.log_weights.defined()) return {};
  const auto of = [](const Neighbours& one) {
    return one.log_weights.defined() ? one.log_weights : torch::zeros_like(one.scores);
  };
  return torch::cat({of(a), of(b)}, 1);
}

void expect_together(const store::Store& a, const store::Store& b) {
  if (a.metric() != b.metric())
    fail(Code::usage, "{} scores by {}, {} by {}; stores that answer together need one metric",
         a.name(), name_of(a.metric()), b.name(), name_of(b.metric()));
  if (a.metric() == store::Metric::l2 && a.width() != b.width())
    fail(Code::usage,
         "{} has keys of {} numbers, {} of {}; l2 distances that are compared are of as many",
         a.name(), a.width(), b.name(), b.width());
  for (const auto& one : a.manifest().sources)
    for (const auto& other : b.manifest().sources)
      if (store::overlap(one, other))
        fail(Code::usage, "{} and {} hold the same text {}; its entries would count twice",
             a.name(), b.name(), one.data);
}

}  // namespace

std::vector<std::unique_ptr<const store::Store>> open_each(const std::vector<std::string>& folders,
                                                           const Tensor& like) {
  DeviceRoom room = device_room(like.device());
  std::vector<std::unique_ptr<const store::Store>> stores;
  for (const auto& folder : folders) {
    auto store = std::make_unique<store::Datastore>(folder);
    if (!nn::in_host_memory(like)) search_on(*store, like.device(), room);
    stores.push_back(std::move(store));
  }
  return stores;
}

Stores::Stores(const std::vector<std::string>& folders, const std::string& model,
               const std::string& tokenizer, const std::string& name, std::int64_t width,
               std::int64_t vocabulary)
    : Stores(open_each(folders, torch::empty({0})), model, tokenizer, name, width, vocabulary) {}

Stores::Stores(std::vector<std::unique_ptr<const store::Store>> stores, const std::string& model,
               const std::string& tokenizer, const std::string& name, std::int64_t width,
               std::int64_t vocabulary)
    : stores_(std::move(stores)), width_(width), vocabulary_(vocabulary) {
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    const store::Store& store = *stores_[i];
    store.expect_model(model, tokenizer, name);
    if (store.query_width() != width)
      fail(Code::bad_data, "{}: its keys have {} numbers, those of {} have {}", store.name(),
           store.query_width(), name, width);
    for (std::size_t j = 0; j < i; ++j) expect_together(*stores_[j], store);
  }
}

Stores::Stores(std::vector<std::unique_ptr<const store::Store>> stores, const model::Loaded& loaded)
    : Stores(std::move(stores), loaded.fingerprint.hex(),
             model::tokenizer_fingerprint(loaded.tokenizer), loaded.folder,
             loaded.model->architecture->d_key(), loaded.model->vocabulary) {}

// What it found, without the entries of the text `own`.
Neighbours Stores::neighbours(std::size_t store, store::Hits hits, const std::string& own) const {
  const store::Store& datastore = *stores_[store];
  const std::int64_t k = hits.k, n = static_cast<std::int64_t>(hits.ids.size()) / k;
  const auto hidden = rows_of(datastore.manifest(), own);
  for (std::size_t i = 0; i < hits.ids.size(); ++i) {
    for (const auto& [begin, end] : hidden)
      if (hits.ids[i] >= begin && hits.ids[i] < end)
        hits.ids[i] = -1, hits.labels[i] = -1, hits.scores[i] = kNothing;
    if (hits.labels[i] < -1 || hits.labels[i] >= vocabulary_ ||
        (hits.labels[i] < 0 && hits.ids[i] >= 0))
      fail(Code::bad_data, "{}: damaged: row {} has the label {} of {}", datastore.name(),
           hits.ids[i], hits.labels[i], vocabulary_);
  }
  Neighbours found;
  found.scores = torch::from_blob(hits.scores.data(), {n, k}, torch::kFloat32).clone();
  found.labels = torch::from_blob(hits.labels.data(), {n, k}, torch::kInt32).to(torch::kInt64);
  found.rows = torch::from_blob(hits.ids.data(), {n, k}, torch::kInt64).clone();
  found.stores = torch::where(found.rows < 0, found.rows,
                              torch::full_like(found.rows, static_cast<std::int64_t>(store)));
  if (!hits.weights.empty())
    found.log_weights =
        torch::from_blob(hits.weights.data(), {n, k}, torch::kInt32).to(torch::kFloat32).log_();
  return hidden.empty() ? found : best(found, k);
}

std::vector<store::Hits> Stores::search_all(std::span<const float> queries,
                                            const store::SearchOptions& options) const {
  std::vector<store::Hits> found;
  for (const auto& store : stores_) found.push_back(store->search(queries, options));
  return found;
}

Neighbours Stores::search(const Tensor& queries, std::int64_t k, std::int64_t nprobe, bool rescore,
                          const std::string& own) const {
  const torch::NoGradGuard no_gradient;
  const Tensor rows = queries.to(torch::kCPU, torch::kFloat32).contiguous();
  const std::span<const float> numbers(rows.const_data_ptr<float>(),
                                       static_cast<std::size_t>(rows.numel()));
  store::SearchOptions options;
  options.k = k, options.nprobe = nprobe, options.rescore = rescore;
  options.threads = at::get_num_threads();
  auto found = search_all(numbers, options);
  Neighbours all = neighbours(0, std::move(found[0]), own);
  if (stores_.size() == 1) return all;
  for (std::size_t i = 1; i < stores_.size(); ++i) {
    const Neighbours more = neighbours(i, std::move(found[i]), own);
    all = {torch::cat({all.scores, more.scores}, 1), torch::cat({all.labels, more.labels}, 1),
           torch::cat({all.rows, more.rows}, 1), torch::cat({all.stores, more.stores}, 1),
           both_weights(all, more)};
  }
  return best(all, k);
}

Neighbours Stores::at(const Tensor& queries, std::span<const std::span<const StoreRow>> rows,
                      std::int64_t k) const {
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
    // Rows of one store that stand together are scored together.
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
        if (label[j] < 0 || label[j] >= vocabulary_)
          fail(Code::bad_data, "{}: damaged: row {} has the label {} of {}", store.name(), row[j],
               label[j], vocabulary_);
      }
    }
  }
  return best(all, k);
}

void Stores::expect_followable() const {
  for (const auto& store : stores_) store->expect_followable();
}

std::string Stores::signature() const {
  std::vector<std::string> names;
  for (const auto& store : stores_) names.push_back(store->fingerprint().substr(0, 12));
  return fmt::format("{}", fmt::join(names, "+"));
}

bool Stores::hold(const std::string& data) const {
  return std::any_of(stores_.begin(), stores_.end(),
                     [&](const auto& store) { return !rows_of(store->manifest(), data).empty(); });
}

std::shared_ptr<const Stores> open_stores(const std::vector<std::string>& folders,
                                          const model::Loaded& loaded) {
  if (folders.empty()) return nullptr;
  return std::make_shared<const Stores>(open_each(folders, loaded.model->head->weights().at(0)),
                                        loaded);
}

}  // namespace infer
