#include "train/batches.h"

namespace train {
namespace {

std::int64_t parts(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// Segments of `length` tokens of a stream with `targets` targets.
struct Segments {
  std::int64_t targets, length;
  std::int64_t count() const { return parts(targets, length); }
  Row row(std::int64_t segment, std::int64_t run) const {
    const std::int64_t begin = segment * length;
    return {
        static_cast<std::uint64_t>(begin), std::min(length, targets - begin), run, segment, true};
  }
};

// Base of the orders that cut the stream every L tokens.
class SegmentOrder : public Order {
 public:
  SegmentOrder(Segments segments, std::int64_t batch) : segments_(segments), batch_(batch) {}
  std::int64_t batches_per_epoch() const override { return parts(segments_.count(), batch_); }
  std::int64_t targets_per_epoch() const override { return segments_.targets; }

 protected:
  Segments segments_;
  std::int64_t batch_;
};

class Shuffled : public SegmentOrder {
 public:
  Shuffled(Segments segments, std::int64_t batch, std::uint64_t seed)
      : SegmentOrder(segments, batch), permutation_(segments.count(), seed) {}
  std::vector<Row> rows(std::int64_t index) override {
    const auto& items = permutation_.of(index / batches_per_epoch());
    const std::int64_t begin = index % batches_per_epoch() * batch_;
    return core::generated(std::min(batch_, segments_.count() - begin), [&](auto i) {
      const auto segment = items[static_cast<std::size_t>(begin + i)];
      return segments_.row(segment, segment);
    });
  }

 private:
  Permutation permutation_;
};

class Kept : public SegmentOrder {
 public:
  using SegmentOrder::SegmentOrder;
  std::vector<Row> rows(std::int64_t index) override {
    const std::int64_t begin = index % batches_per_epoch() * batch_;
    return core::generated(std::min(batch_, segments_.count() - begin),
        [&](auto i) { return segments_.row(begin + i, 0); });
  }
};

class Runs : public SegmentOrder {
 public:
  Runs(Segments segments, std::int64_t batch, std::int64_t length, std::uint64_t seed)
      : SegmentOrder(segments, batch), length_(length),
        permutation_(parts(segments.count(), length), seed) {}
  std::int64_t batches_per_epoch() const override {
    return parts(parts(segments_.count(), length_), batch_ / length_);
  }
  std::vector<Row> rows(std::int64_t index) override {
    const auto& runs = permutation_.of(index / batches_per_epoch());
    const std::int64_t n = batch_ / length_, begin = index % batches_per_epoch() * n;
    std::vector<Row> rows;
    for (std::int64_t i = begin; i < std::min(begin + n, static_cast<std::int64_t>(runs.size()));
         ++i) {
      const std::int64_t run = runs[static_cast<std::size_t>(i)];
      for (std::int64_t s = run * length_; s < std::min((run + 1) * length_, segments_.count());
           ++s)
        rows.push_back(segments_.row(s, run));
    }
    return rows;
  }

 private:
  std::int64_t length_;
  Permutation permutation_;
};

class Listed : public SegmentOrder {
 public:
  Listed(Segments segments, std::int64_t batch, std::vector<std::uint64_t> list, std::uint64_t seed)
      : SegmentOrder(segments, batch), list_(std::move(list)),
        permutation_(batches_per_epoch(), seed) {}
  std::vector<Row> rows(std::int64_t index) override {
    const std::int64_t slice = permutation_.of(
        index / batches_per_epoch())[static_cast<std::size_t>(index % batches_per_epoch())];
    std::vector<Row> rows;
    for (std::int64_t i = slice * batch_; i < std::min((slice + 1) * batch_, segments_.count());
         ++i) {
      const auto segment = static_cast<std::int64_t>(list_[static_cast<std::size_t>(i)]);
      rows.push_back(segments_.row(segment, segment));
    }
    return rows;
  }

 private:
  std::vector<std::uint64_t> list_;
  Permutation permutation_;
};

class Documents : public Order {
 public:
  Documents(const shard::Documents& documents, std::int64_t length, std::int64_t batch,
      std::uint64_t seed)
      : length_(length), batch_(batch) {
    std::uint64_t begin = 0;
    for (const auto end : documents.end) {
      if (end > begin + 1) {
        const auto targets = static_cast<std::int64_t>(end - begin - 1);
        documents_.push_back({begin, targets, segments_});
        segments_ += parts(targets, length);
        targets_ += targets;
      }
      begin = end;
    }
    permutation_ = Permutation(static_cast<std::int64_t>(documents_.size()), seed);
  }
  std::int64_t batches_per_epoch() const override { return parts(segments_, batch_); }
  std::int64_t targets_per_epoch() const override { return targets_; }

  std::vector<Row> rows(std::int64_t index) override {
    lay_out(index / batches_per_epoch());
    const std::int64_t begin = index % batches_per_epoch() * batch_,
                       end = std::min(begin + batch_, segments_);
    // Finds the document that holds segment `begin` of the epoch.
    auto at = std::upper_bound(first_.begin(), first_.end(), begin) - first_.begin() - 1;
    std::vector<Row> rows;
    for (std::int64_t i = begin; i < end; ++i) {
      while (at + 1 < std::ssize(first_) && first_[static_cast<std::size_t>(at + 1)] <= i) ++at;
      const std::int64_t run = permutation_.of(epoch_)[static_cast<std::size_t>(at)];
      const auto& document = documents_[static_cast<std::size_t>(run)];
      const std::int64_t part = i - first_[static_cast<std::size_t>(at)], offset = part * length_;
      rows.push_back({document.begin + static_cast<std::uint64_t>(offset),
          std::min(length_, document.targets - offset), run, document.segment + part, true});
    }
    return rows;
  }

 private:
  struct Document {
    std::uint64_t begin;
    std::int64_t targets, segment;  // count; index of its first segment
  };
  // first_[i] is the number of segments before the epoch's i-th document.
  void lay_out(std::int64_t epoch) {
    if (epoch == epoch_) return;
    first_.clear();
    std::int64_t before = 0;
    for (const auto document : permutation_.of(epoch)) {
      first_.push_back(before);
      before += parts(documents_[static_cast<std::size_t>(document)].targets, length_);
    }
    epoch_ = epoch;
  }

  std::int64_t length_, batch_, segments_ = 0, targets_ = 0, epoch_ = -1;
  std::vector<Document> documents_;
  std::vector<std::int64_t> first_;
  Permutation permutation_{0, 0};
};

class Columns : public Order {
 public:
  Columns(std::int64_t targets, const BatchOptions& options, std::uint64_t seed)
      : targets_(targets), columns_(options.batch),
        cuts_(parts(targets, options.batch), options.segment, options.segment_deviation, seed) {}
  std::int64_t batches_per_epoch() const override { return cuts_.count(); }
  std::int64_t targets_per_epoch() const override { return targets_; }
  bool carries() const override { return true; }
  std::vector<Row> rows(std::int64_t index) override {
    const std::int64_t epoch = index / cuts_.count(), step = index % cuts_.count();
    const std::int64_t from = cuts_.begin(epoch, step), to = cuts_.begin(epoch, step + 1);
    std::vector<Row> rows;
    for (std::int64_t column = 0; column < columns_; ++column) {
      const std::int64_t top = begin(column), end = begin(column + 1);
      const std::int64_t at = std::min(end, top + from);
      rows.push_back({static_cast<std::uint64_t>(at), std::min(end, top + to) - at, column,
          column * cuts_.count() + step, step == 0});
    }
    return rows;
  }

 private:
  // The lengths of columns differ by at most one.
  std::int64_t begin(std::int64_t column) const {
    const std::int64_t whole = targets_ / columns_, rest = targets_ % columns_;
    return column * whole + std::min(column, rest);
  }

  std::int64_t targets_, columns_;
  ColumnCuts cuts_;
};

// Returns the numbers in `order`, which must be a shard of kind order, made for `data`, with this
// `unit` ("segment", "pair"). Throws Error{bad_data} that names both shards. The caller checks the
// range of the numbers.
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

std::vector<std::uint64_t> read_list(
    const shard::Dataset& order, const Segments& segments, const shard::Dataset& data) {
  auto list = read_order(order, data, "segment");
  const auto length = order.header().unit_length;
  if (length != static_cast<std::uint64_t>(segments.length))
    core::bad_usage(
        "{}: is an order of segments of {} tokens; use --segment {}", order.name(), length, length);
  // A last segment of one token has no target.
  const auto count = static_cast<std::uint64_t>(segments.count());
  std::erase_if(list, [&](std::uint64_t segment) { return segment >= count; });
  std::vector<bool> seen(count);
  for (const auto segment : list) {
    if (seen[segment]) core::bad_data("{}: lists segment {} twice", order.name(), segment);
    seen[segment] = true;
  }
  if (list.size() != count)
    core::bad_data("{}: lists only {} of {} segments; an order has each once", order.name(),
        list.size(), count);
  return list;
}

constexpr double kHalved = 0.05;  // share of segments with half the mean length
constexpr std::int64_t kLeast = 5;

// Keeps only the marked targets, for rows of consecutive tokens of the text.
void keep_marked(const shard::Documents& documents, nn::Batch& batch) {
  for (std::int64_t row = 0; row < batch.weight.size(0); ++row) {
    const auto n = batch.place.run[row].ge(0).sum().item<std::int64_t>();
    if (n == 0) continue;
    const auto first =
        static_cast<std::uint64_t>(batch.place.position[row][0].item<std::int64_t>());
    auto learned = torch::zeros({n}, batch.weight.options());
    for (const auto& mark :
        shard::marks_within(documents, first + 1, first + 1 + static_cast<std::uint64_t>(n)))
      learned.slice(0, static_cast<std::int64_t>(mark.begin), static_cast<std::int64_t>(mark.end))
          .fill_(1);
    batch.weight[row].slice(0, 0, n).mul_(learned);
  }
}

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
    return core::mapped(groups_[static_cast<std::size_t>(group)], [&](auto pair) {
      const auto target = batch::target_of(documents_, pair);
      return Row{target.begin, target.length, pair, pair, true};
    });
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
  std::ranges::stable_sort(pairs, {}, lengths);
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

// Creates the order. Micro-batches are groups of pairs with at most options.batch_tokens target
// tokens including padding (a longer pair forms its own group). Without an order shard, pairs of
// similar length are grouped: sorted by the lengths of target and source, ties in a seeded order;
// with one, neighbours in its list. Groups are equal in every epoch and come in a new order each
// epoch. A pair is a run and a segment. `data` must outlive the order. Throws Error{bad_data} as
// batch::check_pairs, and for an order of other data or another unit.
std::unique_ptr<Order> make_pair_order(const BatchOptions& options, const shard::Dataset& data,
    const shard::Dataset* order, std::uint64_t seed) {
  batch::check_pairs(data);
  const auto& documents = data.documents();
  const auto pairs = order != nullptr ? listed(*order, data) : by_length(documents, seed);
  return std::make_unique<PairOrder>(
      documents, batch::group_pairs(documents, pairs, options.batch_tokens), seed);
}

// Reads pairs, as read_batch reads tokens.
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

}  // namespace

std::unique_ptr<Order> make_order(const BatchOptions& options, const shard::Dataset& data,
    const shard::Dataset* order, std::uint64_t seed) {
  if (data.header().kind == shard::Kind::pairs) return make_pair_order(options, data, order, seed);
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  if (data.size() < 2)
    core::bad_data("{}: has {} tokens; at least 2 are needed", data.name(), data.size());
  const Segments segments = {static_cast<std::int64_t>(data.size() - 1), options.segment};
  const std::int64_t batch = options.batch;
  const std::string& name = options.batches;
  if (name == "shuffled") return std::make_unique<Shuffled>(segments, batch, seed);
  if (name == "sequential") return std::make_unique<Kept>(segments, batch);
  if (name == "runs")
    return std::make_unique<Runs>(
        segments, batch, options.run_length ? options.run_length : batch, seed);
  if (name == "documents") {
    auto documents = std::make_unique<Documents>(data.documents(), options.segment, batch, seed);
    if (documents->targets_per_epoch() == 0)
      core::bad_data("{}: no document has two tokens; use another --batches", data.name());
    return documents;
  }
  if (name == "streams") {
    if (segments.targets < batch)
      core::bad_data("{}: {} tokens are too few for {} streams; use a smaller --batch", data.name(),
          data.size(), batch);
    return std::make_unique<Columns>(segments.targets, options, seed);
  }
  if (name == "order" && order)
    return std::make_unique<Listed>(segments, batch, read_list(*order, segments, data), seed);
  core::bad_usage("--batches: unknown value '{}'; see --help", name);
}

MicroBatch read_batch(
    const shard::Dataset& data, const std::vector<Row>& rows, std::int64_t index) {
  if (data.header().kind == shard::Kind::pairs) return read_pair_batch(data, rows, index);
  MicroBatch out;
  out.index = index;
  out.batch = batch::read_rows(data, rows);
  for (const auto& row : rows) out.tokens += row.length;
  return out;
}

void apply(const TokenRules& rules, MicroBatch& micro) {
  auto& batch = micro.batch;
  if (rules.marks != nullptr) keep_marked(*rules.marks, batch);
  for (const auto id : rules.ignored_targets) batch.weight.masked_fill_(batch.targets.eq(id), 0);
  if (!rules.ignored_targets.empty() || rules.marks != nullptr)
    micro.tokens = batch.weight.sum().item<std::int64_t>();
  if (rules.begin >= 0 && batch.inputs.size(1) > 0)
    batch.inputs.select(1, 0).masked_fill_(batch.fresh, rules.begin);
}

ColumnCuts::ColumnCuts(
    std::int64_t total, std::int64_t length, double deviation, std::uint64_t seed)
    : length_(length), count_((total + length - 1) / length) {
  if (deviation == 0) return;
  core::Rng rng(seed, kOrderStream);
  const auto least = std::min(kLeast, length);
  const auto most = length + static_cast<std::int64_t>(3 * deviation);
  for (std::int64_t left = total; left > 0; left -= lengths_.back()) {
    const auto mean = static_cast<double>(length) * (rng.uniform() < kHalved ? 0.5 : 1);
    const auto drawn = std::clamp(std::llround(mean + deviation * rng.normal()),
        static_cast<long long>(least), static_cast<long long>(most));
    lengths_.push_back(std::min<std::int64_t>(drawn, left));
  }
  count_ = std::ssize(lengths_);
  permutation_ = Permutation(count_, seed);
}

std::int64_t ColumnCuts::begin(std::int64_t epoch, std::int64_t step) {
  if (lengths_.empty()) return step * length_;
  if (epoch != epoch_) {
    begins_.assign(1, 0);
    for (const auto i : permutation_.of(epoch))
      begins_.push_back(begins_.back() + lengths_[static_cast<std::size_t>(i)]);
    epoch_ = epoch;
  }
  return begins_[static_cast<std::size_t>(step)];
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

}  // namespace train
