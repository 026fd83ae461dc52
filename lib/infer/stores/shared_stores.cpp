#include "infer/stores/shared_stores.h"

namespace infer {
namespace {

// A store of another rank.
class Elsewhere : public store::Store {
 public:
  Elsewhere(std::string name, store::Manifest manifest)
      : name_(std::move(name)), manifest_(std::move(manifest)) {}
  const std::string& name() const override { return name_; }
  const store::Manifest& manifest() const override { return manifest_; }
  store::Hits search(
      std::span<const float> /*queries*/, const store::SearchOptions& /*options*/) const override {
    core::bug("{}: is searched by another rank", name_);
  }
  void expect_rescorable() const override {}  // its own rank checks
  store::RowContext context(std::int64_t /*row*/, std::int64_t /*most*/) const override {
    core::bad_usage("{}: belongs to another rank, which alone can cite it", name_);
  }

 private:
  std::string name_;
  store::Manifest manifest_;
};

// What each store found for a rank; the rank's rows begin at `begin`.
struct FoundOnRank {
  std::shared_ptr<const std::vector<store::Hits>> stores;
  std::int64_t begin = 0;
};

// Returns the first n rows, (stores, n, k).
template <class T>
Tensor rows_of(const FoundOnRank& found, std::vector<T> store::Hits::*what, std::int64_t n) {
  std::vector<Tensor> parts;
  for (const auto& hits : *found.stores)
    parts.push_back(torch::from_blob(const_cast<T*>((hits.*what).data()) + found.begin * hits.k,
        {n, hits.k}, c10::CppTypeToScalarType<T>::value));
  return torch::stack(parts);
}

// A rank's request; n < 0: it has no more.
struct Asked {
  std::int64_t n = -1;
  store::SearchOptions options;
};

/// Returns the results that one process with all stores would find, stores of rank 0 first.
/// Searches are collective: all ranks search together and make no other collective calls meanwhile.
/// A rank without further queries calls finish().
class SharedStores : public Stores {
 public:
  /// `stores` are in the order of ranks; `counts` has the number of stores of each rank.
  SharedStores(std::vector<std::unique_ptr<const store::Store>> stores,
      std::vector<std::int64_t> counts, const model::Loaded& loaded,
      std::shared_ptr<ranks::Group> group)
      : Stores(std::move(stores), loaded), group_(std::move(group)), counts_(std::move(counts)) {
    for (std::int64_t rank = 0; rank < group_->rank(); ++rank)
      first_ += counts_[static_cast<std::size_t>(rank)];
  }
  void finish() const override {
    const std::lock_guard lock(one_);
    const auto asks = [](const Asked& of) { return of.n >= 0; };
    for (auto all = ask(-1, {}); std::ranges::any_of(all, asks); all = ask(-1, {})) answer(all, {});
  }

 private:
  std::vector<store::Hits> search_all(
      std::span<const float> queries, const store::SearchOptions& options) const override {
    const std::lock_guard lock(one_);
    return answer(ask(static_cast<std::int64_t>(queries.size()) / width(), options), queries);
  }
  store::Hits search_one(std::size_t store, std::span<const float> queries,
      const store::SearchOptions& options) const override {
    return std::move(search_all(queries, options)[store]);
  }
  std::vector<Asked> ask(std::int64_t n, const store::SearchOptions& options) const {
    std::vector<Asked> all;
    for (const auto& numbers : group_->gather(torch::tensor(
             {n, options.k, options.nprobe, std::int64_t{options.rescore}}, torch::kInt64))) {
      const auto* const number = numbers.const_data_ptr<std::int64_t>();
      all.push_back({number[0], {}});
      all.back().options.k = number[1], all.back().options.nprobe = number[2];
      all.back().options.rescore = number[3] != 0;
    }
    return all;
  }
  // All ranks exchange their queries. Each rank searches its stores for all of them, grouped by the
  // number of neighbours, and returns each rank's results.
  std::vector<store::Hits> answer(std::vector<Asked> asked, std::span<const float> queries) const {
    std::int64_t longest = 0;
    const Asked* first = nullptr;
    for (const auto& of : asked) {
      if (of.n < 0) continue;
      longest = std::max(longest, of.n);
      if (first == nullptr) first = &of;
      if (of.options.nprobe != first->options.nprobe ||
          of.options.rescore != first->options.rescore)
        core::bad_usage("--nprobe, --rescore: differ between ranks; use the same values");
    }
    Tensor padded = torch::zeros({longest, width()});
    std::copy(queries.begin(), queries.end(), padded.data_ptr<float>());
    auto all = group_->gather(padded);
    std::map<std::int64_t, std::vector<std::size_t>> ranks_of;  // by k
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (asked[rank].n < 0) asked[rank] = {0, first->options};
      all[rank] = all[rank].narrow(0, 0, asked[rank].n);
      ranks_of[asked[rank].options.k].push_back(rank);
    }
    std::vector<FoundOnRank> found(all.size());
    for (const auto& [k, ranks] : ranks_of) {
      const auto together = core::mapped(ranks, [&](std::size_t rank) { return all[rank]; });
      store::SearchOptions options = first->options;
      options.k = k, options.threads = at::get_num_threads();
      const auto hits = std::make_shared<const std::vector<store::Hits>>(
          search_own(torch::cat(together), options));
      std::int64_t begin = 0;
      for (const std::size_t rank : ranks) {
        found[rank] = {hits, begin};
        begin += all[rank].size(0);
      }
    }

    const auto own = static_cast<std::size_t>(group_->rank());
    const std::int64_t n = asked[own].n, k = asked[own].options.k;
    // Returns to each rank the results of this rank's stores: (stores, n, k).
    const auto come_back = [&](auto what, torch::ScalarType type) {
      std::vector<Tensor> out, in;
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        out.push_back(rows_of(found[rank], what, all[rank].size(0)));
        in.push_back(torch::empty({counts_[rank], n, k}, type));
      }
      in[own] = out[own];
      group_->exchange(0, out, in);
      return torch::cat(in);
    };
    const Tensor scores = come_back(&store::Hits::scores, torch::kFloat32),
                 ids = come_back(&store::Hits::ids, torch::kInt64),
                 labels = come_back(&store::Hits::labels, torch::kInt32);
    std::vector<store::Hits> hits;
    const auto each = static_cast<std::size_t>(n * k);
    for (std::size_t i = 0; i < size(); ++i) {
      const auto part = [&]<class T>(const Tensor& whole, T /*type*/) {
        const T* const begin = whole.const_data_ptr<T>() + i * each;
        return std::vector<T>(begin, begin + each);
      };
      hits.push_back(
          {k, part(ids, std::int64_t{}), part(scores, float{}), part(labels, std::int32_t{})});
    }
    return hits;
  }
  std::vector<store::Hits> search_own(
      const Tensor& queries, const store::SearchOptions& options) const {
    const std::span<const float> numbers(
        queries.const_data_ptr<float>(), static_cast<std::size_t>(queries.numel()));
    const auto own = counts_[static_cast<std::size_t>(group_->rank())];
    return core::generated(own, [&](std::int64_t i) {
      return (*this)[static_cast<std::size_t>(first_ + i)].search(numbers, options);
    });
  }

  std::shared_ptr<ranks::Group> group_;
  std::vector<std::int64_t> counts_;
  std::int64_t first_ = 0;  // index of this rank's first store
  mutable std::mutex one_;  // one search of this rank at a time
};

}  // namespace

std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
    const model::Loaded& loaded, std::shared_ptr<ranks::Group> group) {
  std::vector<std::unique_ptr<const store::Store>> own;
  core::OrderedJson described = core::OrderedJson::array();
  group->together([&] {
    if (folders.empty()) core::bad_usage("--datastore-ranks: requires --datastore on each rank");
    own = open_each(folders, loaded.model->head->weights().at(0));
    for (const auto& store : own) {
      if (store->manifest().weighted())
        core::bad_usage(
            "{}: its entries were merged with --prune, which --datastore-ranks does not support",
            store->name());
      described.push_back(
          {{"name", store->name()}, {"manifest", store::to_json(store->manifest())}});
    }
  });
  std::vector<std::unique_ptr<const store::Store>> stores;
  std::vector<std::int64_t> counts;
  for (const auto& text : group->gather(core::dump(described))) {
    const auto rank = std::ssize(counts);
    const std::string origin = fmt::format("rank {}", rank);
    const auto list = core::parse_json(text, origin);
    counts.push_back(std::ssize(list));
    if (rank == group->rank()) {
      std::move(own.begin(), own.end(), std::back_inserter(stores));
      continue;
    }
    for (const auto& store : list) {
      const auto name = origin + ": " + core::get<std::string>(store, "name", origin);
      stores.push_back(std::make_unique<Elsewhere>(
          name, store::manifest_from(core::get<core::Json>(store, "manifest", origin), name)));
    }
  }
  return std::make_shared<const SharedStores>(
      std::move(stores), std::move(counts), loaded, std::move(group));
}

}  // namespace infer
