// A store's predictions for its own text, compared with a scan of all of its keys without the own
// entry.
#include "store/targets.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "store_folder.h"
#include "unit/thrown.h"

namespace {

// A text of three documents, one of them empty, and its store: the first token has no entry.
struct Case {
  StoreFolder folder;
  StoreRows rows = random_rows(119, 4);
  std::string path = folder.path.parent_path() / "text";
  std::unique_ptr<shard::Dataset> data;
  explicit Case(bool right = true, const std::string& index = "exact") {
    std::vector<std::uint32_t> tokens = {5};
    tokens.insert(tokens.end(), rows.labels.begin(), rows.labels.end());
    {
      core::Output out(path);
      shard::Header header;
      header.dtype = shard::dtype_for(kStoreVocabulary);
      header.vocabulary = kStoreVocabulary;
      shard::Writer writer(out, header);
      writer.write(std::span<const std::uint32_t>(tokens).first(40));
      writer.end_document(40, 1);
      writer.end_document(0, 0);
      writer.write(std::span<const std::uint32_t>(tokens).subspan(40));
      writer.end_document(80, 1);
      writer.finish();
      out.commit();
    }
    data = std::make_unique<shard::Dataset>(std::vector{path});
    // Other rows precede those of the text.
    build_store(folder.path, make_plan(index, "another"), random_rows(31, 9), {0, 12});
    if (!right) rows.labels[50] ^= 1;
    build_store(folder.path, make_plan(index, data->fingerprint().hex()), rows, {0, 39, 39}, true);
  }
};

std::vector<float> keys_of(const store::Datastore& store) {
  std::vector<float> keys(store.keys().size());
  store::to_float(store.keys().data(), keys);
  return keys;
}

// Returns p of each token after row `own` by examining every other row: the k largest products.
std::map<std::uint32_t, double> scan(
    const store::Datastore& store, std::int64_t own, std::int64_t k, double temperature) {
  const auto keys = keys_of(store);
  std::vector<std::pair<double, std::int64_t>> scores;
  for (std::int64_t row = 0; row < store.size(); ++row) {
    double score = 0;
    for (std::size_t j = 0; j < kStoreWidth; ++j)
      score += static_cast<double>(keys[static_cast<std::size_t>(own) * kStoreWidth + j]) *
               static_cast<double>(keys[static_cast<std::size_t>(row) * kStoreWidth + j]);
    if (row != own) scores.emplace_back(score, row);
  }
  std::sort(scores.rbegin(), scores.rend());
  scores.resize(std::min(scores.size(), static_cast<std::size_t>(k)));
  std::map<std::uint32_t, double> p;
  double all = 0;
  for (const auto& [score, row] : scores) all += std::exp(score / temperature);
  for (const auto& [score, row] : scores)
    p[static_cast<std::uint32_t>(store.labels()[static_cast<std::size_t>(row)])] +=
        std::exp(score / temperature) / all;
  return p;
}

std::vector<float> written(const Case& of, const store::TargetOptions& options) {
  const store::Datastore store(of.folder.path);
  const std::string path = of.folder.path.parent_path() / "targets";
  {
    core::Output out(path);
    shard::Writer writer(
        out, store::targets_header(options), {store::targets_provenance(store, *of.data, options)});
    store::write_targets(store, *of.data, options, writer, {});
    writer.finish();
    out.commit();
  }
  const shard::Dataset targets({path});
  std::vector<float> all(targets.size());
  targets.read(0, std::span(all));
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("targets of a text are its neighbours but for itself, by a scan of all rows") {
  const Case of;
  const store::Datastore store(of.folder.path);
  for (const std::int64_t keep : {4, 100}) {
    store::TargetOptions options;
    options.k = 20, options.keep = keep, options.temperature = 3;
    const auto all = written(of, options);
    const auto width = static_cast<std::size_t>(2 * keep), half = static_cast<std::size_t>(keep);
    DOCTEST_REQUIRE(all.size() == 120 * width);
    for (std::size_t j = 0; j < width; ++j) DOCTEST_CHECK(all[j] == 0);  // no token precedes it
    for (std::size_t token = 1; token < 120; ++token) {
      const auto expected = scan(store, 31 + static_cast<std::int64_t>(token) - 1, 20, 3);
      const float *const words = &all[token * width], *const shares = words + half;
      DOCTEST_CHECK(store::is_distribution({words, half}, {shares, half}, kStoreVocabulary));
      double sum = 0, least = 1;
      std::size_t named = 0;
      for (std::size_t j = 0; j < half && shares[j] > 0; ++j, ++named) {
        const double share = static_cast<double>(shares[j]);
        DOCTEST_CHECK(
            share ==
            doctest::Approx(expected.at(static_cast<std::uint32_t>(words[j]))).epsilon(1e-5));
        if (j > 0) DOCTEST_CHECK(shares[j] <= shares[j - 1]);
        sum += share;
        least = share;
      }
      DOCTEST_CHECK(named == std::min(half, expected.size()));
      if (keep == 100) DOCTEST_CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      for (const auto& [word, p] : expected)  // tokens left out are no larger
        if (std::find(words, words + named, static_cast<float>(word)) == words + named)
          DOCTEST_CHECK(p <= least + 1e-6);
    }
  }
}

DOCTEST_TEST_CASE("an own entry that an index does not find takes the place of none of the k") {
  const std::vector<std::int64_t> rows = {4, 7, 2, -1};
  const std::vector<float> scores = {2, 1, 0, -INFINITY};
  const std::vector<std::int32_t> labels = {1, 2, 1, -1};
  const auto without = store::word_shares(rows, scores, labels, 4, 2, 1, 8);
  DOCTEST_REQUIRE(without.size() == 2);
  DOCTEST_CHECK(without[0].word == 2);
  DOCTEST_CHECK(without[0].share == doctest::Approx(1 / (1 + std::exp(-1))));
  const auto other = store::word_shares(rows, scores, labels, 9, 2, 1, 8);
  DOCTEST_REQUIRE(other.size() == 2);
  DOCTEST_CHECK(other[0].word == 1);
  DOCTEST_CHECK(store::word_shares(rows, scores, labels, 4, 0, 1, 8).empty());
}

DOCTEST_TEST_CASE("a store of another text, or with other labels, gives no targets") {
  const Case of;
  const store::Datastore store(of.folder.path);
  DOCTEST_CHECK(store::rows_of(store, *of.data)[1] == 31);
  const Case wrong(false);
  const store::Datastore other(wrong.folder.path);
  const auto labels = thrown([&] { store::rows_of(other, *wrong.data); });
  DOCTEST_CHECK(labels.code == 65);
  DOCTEST_CHECK(labels.names("its rows do not match the tokens of"));
  StoreFolder apart;
  build_store(apart.path, make_plan(), random_rows(10, 1), {0});
  const auto text = thrown([&] { store::rows_of(store::Datastore(apart.path), *of.data); });
  DOCTEST_CHECK(text.code == 65);
  DOCTEST_CHECK(text.names("does not contain"));
}
