#include "train/pair_order.h"

namespace train {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

class PairOrder : public Order {
 public:
  PairOrder(const shard::Documents& documents, Groups groups, std::uint64_t seed)
      : documents_(documents), groups_(std::move(groups)), permutation_(std::ssize(groups_), seed) {
    for (const auto& group : groups_)
      for (const auto pair : group) targets_ += batch::target_of(documents_, pair).length;
  }
  std::int64_t batches_per_epoch() const override { return std::ssize(groups_); }
  std::int64_t targets_per_epoch() const override { return targets_; }
  std::vector<Row> rows(std::int64_t index) override {
    const auto& order = permutation_.of(index / batches_per_epoch());
    const auto group = order[static_cast<std::size_t>(index % batches_per_epoch())];
    std::vector<Row> rows;
    for (const auto pair : groups_[static_cast<std::size_t>(group)]) {
      const auto target = batch::target_of(documents_, pair);
      rows.push_back({target.begin, target.length, pair, pair, true});
    }
    return rows;
  }

 private:
  const shard::Documents& documents_;
  Groups groups_;
  Permutation permutation_;
  std::int64_t targets_ = 0;
};

std::vector<std::int64_t> by_length(const shard::Documents& documents, std::uint64_t seed) {
  std::vector<std::int64_t> pairs(documents.size() / 2);
  std::iota(pairs.begin(), pairs.end(), 0);
  core::Rng(seed, kOrderStream).shuffle(pairs);
  const auto lengths = [&](std::int64_t pair) {
    return std::tuple(
        batch::target_of(documents, pair).length, batch::source_of(documents, pair).length);
  };
  std::stable_sort(
      pairs.begin(), pairs.end(), [&](auto a, auto b) { return lengths(a) < lengths(b); });
  return pairs;
}

std::vector<std::int64_t> listed(const shard::Dataset& order, const shard::Dataset& data) {
  const auto list = read_order(order, data, "pair");
  const auto count = data.documents().size() / 2;
  std::vector<bool> seen(count);
  for (const auto pair : list) {
    if (pair >= count || seen[pair])
      core::bad_data("{}: lists pair {}, which is {}", order.name(), pair,
          pair < count ? "already listed" : "not in the data");
    seen[pair] = true;
  }
  if (list.size() != count)
    core::bad_data(
        "{}: lists only {} of {} pairs; an order has each once", order.name(), list.size(), count);
  return {list.begin(), list.end()};
}

}  // namespace

std::unique_ptr<Order> make_pair_order(const BatchOptions& options, const shard::Dataset& data,
    const shard::Dataset* order, std::uint64_t seed) {
  batch::check_pairs(data);
  const auto& documents = data.documents();
  const auto pairs = order != nullptr ? listed(*order, data) : by_length(documents, seed);
  return std::make_unique<PairOrder>(
      documents, batch::group_pairs(documents, pairs, options.batch_tokens), seed);
}

void check_pair_lengths(const shard::Dataset& data, std::int64_t context) {
  const auto& documents = data.documents();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto begin = i == 0 ? 0 : documents.end[i - 1];
    if (documents.end[i] - begin > static_cast<std::uint64_t>(context))
      core::bad_usage(
          "--context: pair {} of {} has a sentence of {} tokens, but the model has {} positions; "
          "raise it, or leave the pair out",
          i / 2, data.name(), documents.end[i] - begin, context);
  }
}

MicroBatch read_pair_batch(
    const shard::Dataset& data, const std::vector<Row>& rows, std::int64_t index) {
  std::vector<std::int64_t> pairs;
  MicroBatch out;
  out.index = index;
  for (const auto& row : rows) {
    pairs.push_back(row.run);
    out.tokens += row.length;
  }
  out.batch = batch::read_pairs(data, pairs);
  return out;
}

std::vector<std::uint64_t> read_order(
    const shard::Dataset& order, const shard::Dataset& data, const std::string& unit) {
  const auto& header = order.header();
  shard::expect_kind(header, {shard::Kind::order}, order.name());
  if (header.data_fingerprint != data.fingerprint().hex())
    core::bad_data(
        "{}: is an order of data with fingerprint {}, but {} has {}; create the order from these "
        "data",
        order.name(), header.data_fingerprint, data.name(), data.fingerprint().hex());
  if (header.unit != unit)
    core::bad_data("{}: is an order of {}s; give an order of {}s", order.name(), header.unit, unit);
  std::vector<std::uint64_t> list(order.size());
  order.read(0, std::span(list));
  return list;
}

}  // namespace train
