#include "train/batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "nn/base/memory_rule.h"
#include "train/token_objective.h"
#include "unit/train/data.h"

namespace {

using train::MicroBatch;
using train::Row;

constexpr std::uint64_t kVocabulary = 1000;
const std::string kVaried = "columns of segments that vary";

// 103 tokens (102 targets: the last segment of 10 is short) in documents of 1, 25, 1, 40, 0, 2 and
// 34 tokens.
struct Data {
  TemporaryFolder folder;
  std::unique_ptr<shard::Dataset> tokens, order;
  explicit Data(
      std::uint64_t n = 103, std::vector<std::uint64_t> documents = {1, 25, 1, 40, 0, 2, 34}) {
    data::write_counting(folder / "x", n, kVocabulary, documents);
    tokens = std::make_unique<shard::Dataset>(std::vector{folder / "x"});
  }
  void set_order(
      const std::vector<std::uint64_t>& list, std::uint64_t units, std::uint64_t segment = 10) {
    data::write_order(folder / "o", list, units, segment, tokens->fingerprint().hex());
    order = std::make_unique<shard::Dataset>(std::vector{folder / "o"});
  }
  std::unique_ptr<train::Order> make(const std::string& name, std::int64_t batch = 4,
      std::int64_t run = 0, std::uint64_t seed = 1) {
    train::BatchOptions options;
    options.batches = name == kVaried ? "streams" : name;
    if (name == kVaried) options.segment_deviation = 3;
    options.segment = 10;
    options.batch = batch;
    options.run_length = run;
    return train::make_order(options, *tokens, order.get(), seed);
  }
};

std::vector<std::string> all_orders() {
  return {"shuffled", "sequential", "runs", "documents", "streams", kVaried, "order"};
}

struct OrderedData : Data {
  OrderedData() { set_order({3, 7, 1, 0, 9, 2, 10, 4, 6, 8, 5}, 11); }
};

template <class F> core::Code code_of(F f, std::string* text = nullptr) {
  try {
    f();
  } catch (const core::Error& error) {
    if (text) *text = error.what();
    return error.code();
  }
  return core::Code::ok;
}

}  // namespace

DOCTEST_TEST_CASE(
    "every order scores each target exactly once an epoch, with its right input and place") {
  OrderedData data;
  for (const auto& name : all_orders()) {
    DOCTEST_CAPTURE(name);
    const auto order = data.make(name);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<std::int64_t, int> scored;
      std::int64_t tokens = 0;
      for (std::int64_t i = 0; i < order->batches_per_epoch(); ++i) {
        const auto rows = order->rows(epoch * order->batches_per_epoch() + i);
        DOCTEST_CHECK(!rows.empty());
        DOCTEST_CHECK(rows.size() <= 4);
        const MicroBatch micro = train::read_batch(*data.tokens, rows, i);
        const auto& batch = micro.batch;
        const auto n = batch.inputs.numel();
        const auto flat = [](const torch::Tensor& t) { return t.contiguous().view({-1}); };
        const auto inputs = flat(batch.inputs), targets = flat(batch.targets),
                   weight = flat(batch.weight);
        const auto run = flat(batch.place.run), position = flat(batch.place.position);
        for (std::int64_t j = 0; j < n; ++j) {
          if (weight[j].item<float>() == 0) {
            DOCTEST_CHECK(run[j].item<std::int64_t>() == -1);
            continue;
          }
          const auto at = position[j].item<std::int64_t>();
          DOCTEST_CHECK(inputs[j].item<std::int64_t>() == at);
          DOCTEST_CHECK(targets[j].item<std::int64_t>() == at + 1);
          DOCTEST_CHECK(run[j].item<std::int64_t>() >= 0);
          ++scored[at + 1];
        }
        tokens += micro.tokens;
      }
      DOCTEST_CHECK(tokens == order->targets_per_epoch());
      DOCTEST_CHECK(std::ssize(scored) == order->targets_per_epoch());
      for (const auto& [target, times] : scored) DOCTEST_CHECK(times == 1);
      if (name != "documents") DOCTEST_CHECK(tokens == 102);
      if (name == "documents") DOCTEST_CHECK(tokens == 24 + 39 + 1 + 33);
    }
  }
}

DOCTEST_TEST_CASE("an order is a function of seed and index: asked in any order it says the same") {
  OrderedData data;
  for (const auto& name : all_orders()) {
    DOCTEST_CAPTURE(name);
    const auto forward = data.make(name), backward = data.make(name),
               other = data.make(name, 4, 0, 2);
    const std::int64_t n = 3 * forward->batches_per_epoch();
    std::vector<std::vector<Row>> rows;
    for (std::int64_t i = 0; i < n; ++i) rows.push_back(forward->rows(i));
    for (std::int64_t i = n - 1; i >= 0; --i)
      DOCTEST_CHECK((backward->rows(i) == rows[static_cast<std::size_t>(i)]));
    bool same_epochs = true, same_seeds = true;
    for (std::int64_t i = 0; i < forward->batches_per_epoch(); ++i) {
      same_epochs =
          same_epochs && rows[static_cast<std::size_t>(i)] ==
                             rows[static_cast<std::size_t>(i + forward->batches_per_epoch())];
      same_seeds = same_seeds && other->rows(i) == rows[static_cast<std::size_t>(i)];
    }
    const bool random = name != "sequential" && name != "streams";
    DOCTEST_CHECK(same_epochs == !random);
    if (name != "order" && name != "runs" && name != kVaried)
      DOCTEST_CHECK(same_seeds == !random);  // few to choose from
  }
}

DOCTEST_TEST_CASE("runs keep M consecutive segments together, several runs a micro-batch") {
  Data data;
  const auto order = data.make("runs", 6, 3);  // 11 segments: runs 0-2, 3-5, 6-8, 9-10
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < order->batches_per_epoch(); ++i) {
    const auto rows = order->rows(i);
    for (const auto& row : rows) {
      DOCTEST_CHECK(row.run == row.segment / 3);
      DOCTEST_CHECK(row.begin == static_cast<std::uint64_t>(row.segment * 10));
      seen.insert(row.segment);
    }
    for (std::size_t r = 1; r < rows.size(); ++r) {
      if (rows[r].run == rows[r - 1].run) DOCTEST_CHECK(rows[r].segment == rows[r - 1].segment + 1);
    }
  }
  DOCTEST_CHECK(seen.size() == 11);
}

DOCTEST_TEST_CASE("kept order is the text's, one run") {
  Data data;
  const auto order = data.make("sequential");
  const auto rows = order->rows(1);
  DOCTEST_REQUIRE(rows.size() == 4);
  for (std::int64_t r = 0; r < 4; ++r)
    DOCTEST_CHECK((rows[static_cast<std::size_t>(r)] ==
                   Row{static_cast<std::uint64_t>(40 + r * 10), 10, 0, 4 + r, true}));
  DOCTEST_CHECK(order->rows(2).back().length == 2);
}

DOCTEST_TEST_CASE("documents: no segment crosses a boundary, a document is one run") {
  Data data;
  const auto order = data.make("documents");
  const auto& ends = data.tokens->documents().end;
  for (std::int64_t i = 0; i < 2 * order->batches_per_epoch(); ++i) {
    for (const auto& row : order->rows(i)) {
      const auto document = std::upper_bound(ends.begin(), ends.end(), row.begin);
      DOCTEST_CHECK(row.begin + static_cast<std::uint64_t>(row.length) < *document);
    }
  }
  const MicroBatch micro =
      train::read_batch(*data.tokens, {{1, 10, 5, 7, true}, {65, 1, 6, 8, true}}, 0);
  DOCTEST_CHECK(!micro.batch.dense());
  DOCTEST_CHECK(micro.tokens == 11);
}

DOCTEST_TEST_CASE("unscored targets weigh nothing and are not counted") {
  Data data;
  MicroBatch micro = train::read_batch(*data.tokens, {{1, 10, 5, 7, true}}, 0);
  const auto id = micro.batch.targets[0][3].item<std::int64_t>();
  const auto left = micro.batch.targets.ne(id);
  train::apply({{id, 1 << 20}, -1}, micro);
  DOCTEST_CHECK(micro.tokens == left.sum().item<std::int64_t>());
  DOCTEST_CHECK(micro.tokens < 10);
  DOCTEST_CHECK(torch::equal(micro.batch.weight, left.to(torch::kFloat32)));
}

DOCTEST_TEST_CASE("of marked data only marked targets weigh, in every order of batches") {
  const TemporaryFolder folder;
  auto header = data::tokens_header(1000);
  header.marked = true;
  std::vector<std::uint64_t> tokens(301);
  for (std::uint64_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
  data::write_shard(folder / "marked", header, tokens, {7, 1, 0, 93, 200});
  const shard::Dataset marked({folder / "marked"});
  train::TokenRules rules;
  rules.marks = &marked.documents();
  for (const char* name : {"shuffled", "sequential", "runs", "documents", "streams"}) {
    DOCTEST_CAPTURE(name);
    train::BatchOptions options;
    options.batches = name, options.segment = 13, options.batch = 4, options.run_length = 2;
    const auto order = train::make_order(options, marked, nullptr, 1);
    std::int64_t all = 0;
    for (std::int64_t index = 0; index < order->batches_per_epoch(); ++index) {
      MicroBatch micro = train::read_batch(marked, order->rows(index), index);
      const auto plain = micro.batch.weight.clone();
      train::apply(rules, micro);
      std::int64_t kept = 0;
      for (std::int64_t r = 0; r < plain.size(0); ++r)
        for (std::int64_t i = 0; i < plain.size(1); ++i) {
          const auto target = micro.batch.targets[r][i].item<std::int64_t>();  // its own place
          const bool learned =
              plain[r][i].item<float>() > 0 && data::is_marked(static_cast<std::uint64_t>(target));
          DOCTEST_REQUIRE(micro.batch.weight[r][i].item<float>() == (learned ? 1 : 0));
          kept += learned;
        }
      DOCTEST_CHECK(micro.tokens == kept);
      all += kept;
    }
    DOCTEST_CHECK(all > order->targets_per_epoch() / 3);
  }
}

DOCTEST_TEST_CASE(
    "fresh rows begin with the token that they are told to, in the place of their own") {
  Data data;
  const std::vector<train::Row> rows = {{1, 10, 5, 7, true}, {20, 8, 5, 8, false}};
  MicroBatch micro = train::read_batch(*data.tokens, rows, 0);
  const auto plain = train::read_batch(*data.tokens, rows, 0);
  train::apply({{}, 77}, micro);
  auto expected = plain.batch.inputs.clone();
  expected[0][0] = 77;
  DOCTEST_CHECK(torch::equal(micro.batch.inputs, expected));
  DOCTEST_CHECK(torch::equal(micro.batch.targets, plain.batch.targets));
  DOCTEST_CHECK(torch::equal(micro.batch.weight, plain.batch.weight));
}

DOCTEST_TEST_CASE("columns walk on where they were and are fresh only where an epoch begins") {
  Data data;
  for (const auto& name : {std::string("streams"), kVaried}) {
    DOCTEST_CAPTURE(name);
    const auto order = data.make(name);
    DOCTEST_CHECK(order->carries());
    std::vector<Row> before = order->rows(0);
    for (const auto& row : before) DOCTEST_CHECK(row.fresh);
    for (std::int64_t i = 1; i < order->batches_per_epoch(); ++i) {
      const auto rows = order->rows(i);
      for (std::size_t c = 0; c < rows.size(); ++c) {
        DOCTEST_CHECK(!rows[c].fresh);
        DOCTEST_CHECK(
            rows[c].begin == before[c].begin + static_cast<std::uint64_t>(before[c].length));
        DOCTEST_CHECK(rows[c].run == before[c].run);
        DOCTEST_CHECK(rows[c].segment == before[c].segment + 1);
      }
      before = rows;
    }
    for (const auto& row : order->rows(order->batches_per_epoch())) DOCTEST_CHECK(row.fresh);
  }
}

DOCTEST_TEST_CASE("lengths that vary: as the header says, all columns alike") {
  constexpr std::int64_t kTotal = 200'000, kLength = 70;
  constexpr double kDeviation = 5;
  train::ColumnCuts cuts(kTotal, kLength, kDeviation, 7);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < cuts.count(); ++i)
    lengths.push_back(cuts.begin(0, i + 1) - cuts.begin(0, i));
  DOCTEST_CHECK(cuts.begin(0, 0) == 0);
  DOCTEST_CHECK(cuts.begin(0, cuts.count()) == kTotal);
  double usual = 0, sum = 0, squares = 0;
  for (const auto length : lengths) {
    DOCTEST_CHECK(length <= 85);
    if (length < 52) continue;
    usual += 1;
    sum += static_cast<double>(length);
    squares += static_cast<double>(length * length);
  }
  const double mean = sum / usual, n = static_cast<double>(cuts.count());
  DOCTEST_CHECK(usual / n == doctest::Approx(0.95).epsilon(0.01));
  DOCTEST_CHECK(mean == doctest::Approx(kLength).epsilon(0.01));
  DOCTEST_CHECK(
      std::sqrt(squares / usual - mean * mean) == doctest::Approx(kDeviation).epsilon(0.05));

  // Another epoch has the same lengths in another order.
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < cuts.count(); ++i)
    others.push_back(cuts.begin(1, i + 1) - cuts.begin(1, i));
  DOCTEST_CHECK(others != lengths);
  DOCTEST_CHECK((std::multiset(others.begin(), others.end()) ==
                 std::multiset(lengths.begin(), lengths.end())));

  Data data;
  const auto order = data.make(kVaried, 3);  // 102 targets: columns of 34
  for (const auto& row : order->rows(2)) DOCTEST_CHECK(row.length == order->rows(2)[0].length);
}

DOCTEST_TEST_CASE(
    "an order shard: neighbours stay in one micro-batch, micro-batches are shuffled whole") {
  OrderedData data;
  const auto order = data.make("order");
  const std::vector<std::vector<std::int64_t>> slices = {{3, 7, 1, 0}, {9, 2, 10, 4}, {6, 8, 5}};
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::set<std::vector<std::int64_t>> seen;
    for (std::int64_t i = 0; i < 3; ++i) {
      std::vector<std::int64_t> segments;
      for (const auto& row : order->rows(epoch * 3 + i)) {
        segments.push_back(row.segment);
        DOCTEST_CHECK(row.run == row.segment);
      }
      seen.insert(segments);
    }
    DOCTEST_CHECK((seen == std::set<std::vector<std::int64_t>>(slices.begin(), slices.end())));
  }
}

DOCTEST_TEST_CASE("an order of other data is refused, and both are named") {
  OrderedData data;
  Data other(113, {});
  other.order = std::move(data.order);
  std::string text;
  DOCTEST_CHECK(code_of([&] { other.make("order"); }, &text) == core::Code::bad_data);
  DOCTEST_CHECK(text.find(data.tokens->fingerprint().hex()) != text.npos);
  DOCTEST_CHECK(text.find(other.tokens->fingerprint().hex()) != text.npos);
}

DOCTEST_TEST_CASE("an order that is no permutation, or of other segments, is refused") {
  Data data;
  data.set_order({3, 7, 1, 0, 9, 2, 10, 4, 6, 8, 8}, 11);
  DOCTEST_CHECK(code_of([&] { data.make("order"); }) == core::Code::bad_data);
  data.set_order({3, 7, 1}, 11);
  DOCTEST_CHECK(code_of([&] { data.make("order"); }) == core::Code::bad_data);
  data.set_order({0, 1, 2, 3, 4, 5, 6}, 7, 16);
  DOCTEST_CHECK(code_of([&] { data.make("order"); }) == core::Code::usage);
}

DOCTEST_TEST_CASE("an order may list a last segment of one token, which has no target") {
  Data data(101, {});
  data.set_order({3, 7, 1, 0, 9, 2, 10, 4, 6, 8, 5}, 11);
  const auto order = data.make("order");
  DOCTEST_CHECK(order->batches_per_epoch() == 3);
  DOCTEST_CHECK(order->targets_per_epoch() == 100);
}

DOCTEST_TEST_CASE("data without a target are refused") {
  Data one(1, {}), three(3, {1, 1, 1});
  DOCTEST_CHECK(code_of([&] { one.make("shuffled"); }) == core::Code::bad_data);
  DOCTEST_CHECK(code_of([&] { three.make("documents"); }) == core::Code::bad_data);
  DOCTEST_CHECK(code_of([&] { three.make("streams"); }) == core::Code::bad_data);
  DOCTEST_CHECK(three.make("shuffled")->targets_per_epoch() == 2);
}

DOCTEST_TEST_CASE("who sees whom in a micro-batch follows from the places") {
  Data data(121, {});
  data.set_order({3, 7, 1, 0, 9, 2, 10, 4, 6, 8, 5, 11}, 12);
  const auto visible = [&](const std::string& batches, const std::string& memory,
                           std::int64_t batch, std::int64_t run) {
    const auto rows = data.make(batches, batch, run)->rows(0);
    const auto place = train::read_batch(*data.tokens, rows, 0).batch.place.flatten();
    return nn::visibility(place, place, nn::MemoryRule::parse(memory)).sum(1);
  };
  const auto range = torch::arange(10);
  // kept: with long, a token sees all earlier tokens of the micro-batch; with local those of its
  // own segment.
  DOCTEST_CHECK(torch::equal(visible("sequential", "long", 4, 0), torch::arange(40)));
  DOCTEST_CHECK(torch::equal(visible("sequential", "local", 4, 0), range.repeat(4)));
  // runs: long covers the run, but not the neighbouring run.
  DOCTEST_CHECK(torch::equal(visible("runs", "long", 4, 2), torch::arange(20).repeat(2)));
  // order: with ext a token sees every token of the other segments; the sum counts nothing twice.
  DOCTEST_CHECK(torch::equal(visible("order", "ext", 4, 0), torch::full({40}, 30)));
  DOCTEST_CHECK(torch::equal(visible("order", "local,ext", 4, 0), range.repeat(4) + 30));
}

DOCTEST_TEST_CASE("prefetching gives what reading gives, and hands on what reading throws") {
  OrderedData data;
  const auto order = data.make("shuffled"), again = data.make("shuffled");
  train::Prefetch prefetch(*data.tokens, *order, 2);
  for (std::int64_t i = 2; i < 9; ++i) {
    const auto micro = prefetch.next();
    DOCTEST_CHECK(micro.index == i);
    DOCTEST_CHECK(torch::equal(
        micro.batch.inputs, train::read_batch(*data.tokens, again->rows(i), i).batch.inputs));
  }
  // The second of three shares of six, from step 1 on.
  train::Prefetch shared(*data.tokens, *again, 1, {2, 2, 6});
  for (const std::int64_t i : {8, 9, 14, 15, 20}) DOCTEST_CHECK(shared.next().index == i);
  struct Broken : train::Order {
    std::int64_t batches_per_epoch() const override { return 1; }
    std::int64_t targets_per_epoch() const override { return 1; }
    std::vector<Row> rows(std::int64_t) override { return {{1 << 20, 5, 0, 0, true}}; }
  } broken;
  train::Prefetch fails(*data.tokens, broken, 0);
  DOCTEST_CHECK(code_of([&] { fails.next(); }) == core::Code::bad_data);
}
