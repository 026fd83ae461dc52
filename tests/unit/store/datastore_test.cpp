#include "store/datastore.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>

#include "core/io.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using store::Datastore;

void flip_byte(const fs::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(byte);
}

}  // namespace

DOCTEST_TEST_CASE("what was added is found, with its label and its document") {
  for (const std::string index : {"exact", "IVF8,Flat", "Flat"}) {
    for (const store::Metric metric : {store::Metric::ip, store::Metric::l2}) {
      const StoreFolder folder;
      const auto rows = random_rows(1000, 1);
      auto plan = make_plan(index);
      plan.metric = metric;
      build_store(folder.path, plan, rows, {0, 10, 10, 700});
      const Datastore opened(folder.path);
      DOCTEST_CHECK(opened.size() == 1000);
      DOCTEST_CHECK(std::equal(rows.labels.begin(), rows.labels.end(), opened.labels().begin()));
      DOCTEST_CHECK(opened.document_of(0) == 0);
      DOCTEST_CHECK(opened.document_of(10) == 2);  // document 1 has no row
      DOCTEST_CHECK(opened.document_of(999) == 3);
      // A query nine times as long as a key and near it: its row is first by either metric.
      store::SearchOptions options;
      options.k = 5, options.nprobe = 8;
      std::vector<float> queries(rows.keys.begin(), rows.keys.begin() + 20 * kStoreWidth);
      const auto hits = opened.search(queries, options);
      const auto exact = opened.search_exactly(queries, options);
      DOCTEST_REQUIRE(hits.ids.size() == 100);
      for (std::size_t i = 0; i < 100; ++i) {
        DOCTEST_CHECK(hits.ids[i] == exact.ids[i]);
        DOCTEST_CHECK(hits.scores[i] == doctest::Approx(exact.scores[i]).epsilon(1e-3));
        DOCTEST_CHECK(hits.labels[i] == rows.labels[static_cast<std::size_t>(hits.ids[i])]);
        if (metric == store::Metric::l2 && i % 5 == 0) {
          DOCTEST_CHECK(hits.ids[i] == static_cast<std::int64_t>(i / 5));
          DOCTEST_CHECK(std::abs(hits.scores[i]) < 1e-2);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("rescoring gives compressed hits the scores of the keys, sorted anew") {
  const StoreFolder folder;
  const auto rows = random_rows(3000, 2);
  build_store(folder.path, make_plan("IVF4,PQ8x4fs"), rows, {0});
  const Datastore opened(folder.path);
  DOCTEST_CHECK(opened.manifest().recall.queries > 0);
  DOCTEST_CHECK(opened.manifest().recall.recall > 0.3);
  store::SearchOptions options;
  options.k = 40, options.nprobe = 4, options.rescore = true;
  const std::span queries(rows.keys.data(), 3 * kStoreWidth);
  const auto hits = opened.search(queries, options);
  options.k = 3000;
  const auto exact = opened.search_exactly(queries, options);
  for (std::size_t q = 0; q < 3; ++q)
    for (std::size_t i = q * 40; i < q * 40 + 40; ++i) {
      if (hits.ids[i] < 0) continue;
      const auto* begin = exact.ids.data() + q * 3000;
      const auto at = std::find(begin, begin + 3000, hits.ids[i]) - exact.ids.data();
      DOCTEST_CHECK(hits.scores[i] ==
                    doctest::Approx(exact.scores[static_cast<std::size_t>(at)]).epsilon(1e-4));
      if (i % 40 > 0) DOCTEST_CHECK(hits.scores[i] <= hits.scores[i - 1]);
    }
}

DOCTEST_TEST_CASE("more equal rows than k are no trouble to a 4-bit index") {
  // Seven of eight rows are one key, the eighth its opposite, which misleads the sampled threshold.
  auto rows = random_rows(6000, 2);
  for (std::size_t i = 1; i < 5000; ++i)
    for (std::size_t j = 0; j < kStoreWidth; ++j)
      rows.keys[i * kStoreWidth + j] = (i % 8 == 0 ? -1.0F : 1.0F) * rows.keys[j];
  for (std::size_t j = 0; j < kStoreWidth; ++j) rows.keys[j] *= -1;
  for (const std::string index : {"IVF1,PQ8x4fs", "PQ8x4fs"}) {
    const StoreFolder folder;
    auto plan = make_plan(index);
    plan.metric = store::Metric::l2;
    build_store(folder.path, plan, rows, {0});
    const Datastore opened(folder.path);
    store::SearchOptions options;
    options.k = 200, options.nprobe = 4;
    const auto hits =
        opened.search(std::span(rows.keys).subspan(kStoreWidth, kStoreWidth), options);
    for (const auto row : hits.ids) DOCTEST_CHECK((row >= 0 && row < 5000 && row % 8 != 0));
  }
}

DOCTEST_TEST_CASE("fewer rows than k: the rest is marked") {
  const StoreFolder folder;
  build_store(folder.path, make_plan("Flat"), random_rows(3, 3), {0});
  const auto rows = random_rows(1, 4);
  const Datastore opened(folder.path);
  for (const auto& hits : {opened.search(rows.keys, {}), opened.search_exactly(rows.keys, {})})
    for (std::size_t i = 3; i < 1024; ++i) {
      DOCTEST_REQUIRE(hits.ids[i] == -1);
      DOCTEST_REQUIRE(hits.labels[i] == -1);
      DOCTEST_REQUIRE(hits.scores[i] == -std::numeric_limits<float>::infinity());
    }
}

DOCTEST_TEST_CASE("a store of another model or tokenizer is refused, both named") {
  const StoreFolder folder;
  build_store(folder.path, make_plan(), random_rows(3, 3), {0});
  const Datastore opened(folder.path);
  opened.expect_model("model-a", "tokenizer-a", "m");
  const auto model = thrown([&] { opened.expect_model("model-b", "tokenizer-a", "m"); });
  DOCTEST_CHECK(model.code == 65);
  DOCTEST_CHECK((model.names("model-a") && model.names("model-b")));
  const auto tokenizer = thrown([&] { opened.expect_model("model-a", "tokenizer-b", "m"); });
  DOCTEST_CHECK(tokenizer.code == 65);
  DOCTEST_CHECK((tokenizer.names("tokenizer-a") && tokenizer.names("tokenizer-b")));
}

DOCTEST_TEST_CASE("a damaged or missing file is refused when the store is opened") {
  const auto rows = random_rows(500, 5);
  const auto opened_after = [&](const std::function<void(const fs::path&)>& damage) {
    const StoreFolder folder;
    build_store(folder.path, make_plan("IVF4,Flat"), rows, {0, 100});
    damage(folder.path);
    return thrown([&] { Datastore{folder.path}; }).code;
  };
  DOCTEST_CHECK(opened_after([](const fs::path&) {}) == 0);
  for (const std::streamoff at : {0, 50, 2000})
    DOCTEST_CHECK(opened_after([&](const fs::path& f) { flip_byte(f / "index.faiss", at); }) == 65);
  for (const std::streamoff at : {200, 400, 700})
    DOCTEST_CHECK(opened_after([&](const fs::path& f) { flip_byte(f / "store.json", at); }) == 65);
  DOCTEST_CHECK(opened_after([](const fs::path& f) { flip_byte(f / "documents.npy", 136); }) == 65);
  for (const std::string name : {"keys.npy", "values.npy", "documents.npy", "index.faiss"}) {
    DOCTEST_CAPTURE(name);
    DOCTEST_CHECK(opened_after([&](const fs::path& f) { fs::remove(f / name); }) == 66);
    DOCTEST_CHECK(opened_after([&](const fs::path& f) { flip_byte(f / name, 3); }) == 65);
    DOCTEST_CHECK(opened_after([&](const fs::path& f) {
      fs::resize_file(f / name, fs::file_size(f / name) - 1);
    }) == 65);
  }
  DOCTEST_CHECK(opened_after([](const fs::path& f) { fs::remove(f / "store.json"); }) == 66);
}

DOCTEST_TEST_CASE("building goes on after it was stopped, to the same bytes") {
  const auto rows = random_rows(1000, 6);
  for (const std::string index : {"exact", "IVF8,PQ4x4"}) {
    const StoreFolder whole;
    build_store(whole.path, make_plan(index), rows, {0, 400});
    for (const std::size_t stop : {0, 100, 1000}) {
      const StoreFolder folder;
      {
        store::Builder builder(folder.path, make_plan(index), false);
        if (stop > 0) {
          builder.add({rows.keys.data(), stop * kStoreWidth}, {rows.labels.data(), stop});
          builder.commit("here");
        }
        // These rows were never committed, as after kill -9.
        builder.add({rows.keys.data(), 7 * kStoreWidth}, {rows.labels.data(), 7});
      }
      DOCTEST_CHECK(thrown([&] { Datastore{folder.path}; }).code == 66);
      {
        const store::Builder builder(folder.path, make_plan(index), false);
        DOCTEST_CHECK(builder.rows() == stop);
        DOCTEST_CHECK(builder.place() == (stop > 0 ? core::Json("here") : core::Json()));
      }
      const auto other = thrown([&] {
        auto plan = make_plan(index);
        plan.windows["window"] = 32;
        store::Builder{folder.path, plan, false};
      });
      DOCTEST_CHECK(other.code == 64);
      DOCTEST_CHECK((other.names("32") && other.names("64")));
      build_store(folder.path, make_plan(index), rows, {0, 400});
      DOCTEST_CHECK(contents(folder.path) == contents(whole.path));
    }
  }
}

DOCTEST_TEST_CASE("a store that was begun otherwise: what differs, in the words of the options") {
  const StoreFolder folder;
  auto begun = make_plan("IVF4,Flat", "0123456789abcdef0123456789abcdef");
  begun.model = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  begun.data_name = "train.shard.zst", begun.model_name = "model";
  begun.windows["carry"] = "off", begun.windows["batch_tokens"] = 4096;
  store::Builder{folder.path, begun, false};
  const auto refused = [&](const std::function<void(store::Plan&)>& change) {
    auto plan = begun;
    change(plan);
    const auto error = thrown([&] { store::Builder{folder.path, plan, false}; });
    DOCTEST_CHECK(error.code == 64);
    DOCTEST_CHECK(!error.names("aaaaaaaaaaaa"));
    DOCTEST_CHECK(!error.names("0123456789abcdef"));
    return error;
  };
  using store::Plan;
  DOCTEST_CHECK(refused([](Plan& p) {
    p.data = "other";
  }).names("begun with another FILE than train.shard.zst; rerun with that"));
  DOCTEST_CHECK(
      refused([](Plan& p) { p.model = "other"; }).names("begun with another --model than model;"));
  DOCTEST_CHECK(refused([](Plan& p) {
    p.tokenizer = "other";
  }).names("begun with another tokenizer than that of model;"));
  DOCTEST_CHECK(refused([](Plan& p) {
    p.metric = store::Metric::l2;
  }).names("begun with --metric ip, now l2;"));
  DOCTEST_CHECK(
      refused([](Plan& p) { p.index = ""; }).names("begun with --index IVF4,Flat, now none;"));
  DOCTEST_CHECK(
      refused([](Plan& p) { p.windows["window"] = 32; }).names("begun with --window 64, now 32;"));
  DOCTEST_CHECK(refused([](Plan& p) {
    p.windows["batch_tokens"] = 64;
  }).names("begun with --batch-tokens 4096, now 64;"));
  DOCTEST_CHECK(refused([](Plan& p) {
    p.windows["reach"] = "|clamp-length:4";
  }).names("another layer memory"));
  store::Builder{folder.path, begun, false};  // which can resume
}

DOCTEST_TEST_CASE("the same command again has nothing to do; another is refused") {
  const StoreFolder folder;
  build_store(folder.path, make_plan(), random_rows(10, 7), {0});
  DOCTEST_CHECK(store::Builder(folder.path, make_plan(), false).complete());
  DOCTEST_CHECK(thrown([&] {
    store::Builder{folder.path, make_plan("exact", "other data"), false};
  }).code == 64);
  auto plan = make_plan();
  plan.model = "model-b";
  const auto model = thrown([&] { store::Builder{folder.path, plan, true}; });
  DOCTEST_CHECK(model.code == 65);
  DOCTEST_CHECK((model.names("model-a") && model.names("model-b")));
}

DOCTEST_TEST_CASE("while rows are added readers see the old store, afterwards all of it") {
  const auto rows = random_rows(600, 8), more = random_rows(300, 9);
  for (const std::string index : {"exact", "IVF4,Flat"}) {
    const StoreFolder folder;
    build_store(folder.path, make_plan(index), rows, {0, 50});
    const Datastore before(folder.path);
    {
      store::Builder builder(folder.path, make_plan("", "more"), true);
      builder.add(more.keys, more.labels);
      builder.commit(nullptr);
      DOCTEST_CHECK(Datastore(folder.path).size() == 600);
      DOCTEST_CHECK(Datastore(folder.path).fingerprint() == before.fingerprint());
    }
    build_store(folder.path, make_plan("", "more"), more, {0, 200}, true);
    const Datastore after(folder.path);
    DOCTEST_CHECK(after.size() == 900);
    DOCTEST_CHECK(after.fingerprint() != before.fingerprint());
    DOCTEST_CHECK(after.document_of(599) == 1);
    DOCTEST_CHECK(after.document_of(600) == 2);
    DOCTEST_CHECK(after.document_of(800) == 3);
    store::SearchOptions options;
    options.k = 1, options.nprobe = 4;
    std::vector<float> query(more.keys.begin(), more.keys.begin() + kStoreWidth);
    for (float& x : query) x *= 8;
    DOCTEST_CHECK(after.search(query, options).ids == after.search_exactly(query, options).ids);
    DOCTEST_CHECK(before.search_exactly(query, options).ids[0] < 600);
    // Adding the same data twice is a mistake.
    DOCTEST_CHECK(store::Builder(folder.path, make_plan("", "more"), true).complete());
  }
}

DOCTEST_TEST_CASE("keys that float16 cannot hold and labels outside the vocabulary are refused") {
  const StoreFolder folder;
  store::Builder builder(folder.path, make_plan(), false);
  auto rows = random_rows(1, 1);
  rows.keys[3] = 70'000;
  DOCTEST_CHECK(thrown([&] { builder.add(rows.keys, rows.labels); }).code == 65);
  rows = random_rows(1, 1);
  rows.labels[0] = static_cast<std::int32_t>(kStoreVocabulary);
  DOCTEST_CHECK(thrown([&] { builder.add(rows.keys, rows.labels); }).code == 65);
}

DOCTEST_TEST_CASE("two programs do not build in one folder") {
  const StoreFolder folder;
  const store::Builder builder(folder.path, make_plan(), false);
  DOCTEST_CHECK(thrown([&] { store::Builder{folder.path, make_plan(), false}; }).code == 73);
}

DOCTEST_TEST_CASE(
    "keys that were multiplied by a power of 2 give the scores of those that were not") {
  const auto rows = random_rows(300, 21);
  auto large = rows;
  for (float& number : large.keys) number *= 0x1p20f;
  const auto asked = random_rows(5, 22);
  auto queries = asked.keys;
  for (float& number : queries) number *= 0x1p20f;
  for (const auto metric : {store::Metric::ip, store::Metric::l2}) {
    for (const char* index : {"exact", "IVF4,Flat"}) {
      const StoreFolder plain, scaled, refused;
      auto plan = make_plan(index);
      plan.metric = metric;
      build_store(plain.path, plan, rows, {0});
      const auto error = thrown([&] { build_store(refused.path, plan, large, {0}); });
      DOCTEST_CHECK(error.code == 65);
      DOCTEST_CHECK(error.names("with --key-scale 0.00390625"));  // 4 x 2^20 x 3.9 x 2^-8 < 65,504
      auto wild = rows;
      for (float& number : wild.keys) number *= 0x1p120f;
      const StoreFolder beyond;
      DOCTEST_CHECK(thrown([&] {
        build_store(beyond.path, plan, wild, {0});
      }).names("beyond any --key-scale; is the model damaged?"));
      plan.key_scale = 0x1p-20;
      build_store(refused.path, plan, large, {0});  // the same command with a scale
      build_store(scaled.path, plan, large, {0});
      DOCTEST_CHECK(contents(refused.path) == contents(scaled.path));
      const store::Datastore a(plain.path), b(scaled.path);
      store::SearchOptions options;
      options.k = 7, options.nprobe = 4;
      for (const bool rescore : {false, true}) {
        options.rescore = rescore;
        const auto hits = a.search(asked.keys, options), found = b.search(queries, options);
        DOCTEST_CHECK(found.ids == hits.ids);
        for (std::size_t i = 0; i < hits.scores.size(); ++i)
          DOCTEST_CHECK(found.scores[i] == hits.scores[i] * 0x1p40f);
      }
      std::vector<float> one(3), other(3);
      std::vector<std::int32_t> labels(3);
      const std::vector<std::int64_t> which = {4, 200, 7};
      a.score(std::span(asked.keys).first(kStoreWidth), which, one, labels);
      b.score(std::span(queries).first(kStoreWidth), which, other, labels);
      for (std::size_t i = 0; i < 3; ++i) DOCTEST_CHECK(other[i] == one[i] * 0x1p40f);
      DOCTEST_CHECK(a.fingerprint() != b.fingerprint());
      plan.key_scale = 0.5, plan.data = "more";
      DOCTEST_CHECK(thrown([&] {
        build_store(scaled.path, plan, rows, {0}, true);
      }).names("--key-scale 9.5367431640625e-07"));
    }
  }
}
