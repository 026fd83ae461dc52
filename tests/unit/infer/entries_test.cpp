// The store of a text: its entries, their keys, and resuming after a stop.

#include <doctest/doctest.h>

#include <filesystem>

#include "infer/keys/store_build.h"
#include "infer/windows/windows.h"
#include "tiny.h"
#include "tiny_pairs.h"
#include "unit/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using torch::Tensor;

std::unique_ptr<infer::EntryWalk> pair_walk(nn::Model& model, const tiny::Pairs& pairs) {
  const auto windows = infer::pair_windows(*pairs.data, model, 16);
  return infer::make_walk(model, *pairs.data, windows, torch::kCPU);
}

struct Walked {
  Tensor keys, labels;
};

// Returns all keys and labels of a walk.
Walked walk_all(nn::Model& model, const shard::Dataset& data, const infer::WindowPlan& windows) {
  const auto walk = infer::make_walk(model, data, windows, torch::kCPU);
  std::vector<Tensor> keys, labels;
  while (auto block = walk->next()) {
    block->arrive();
    keys.push_back(block->keys);
    labels.push_back(block->labels);
  }
  return {torch::cat(keys), torch::cat(labels)};
}

// Returns the keys of one row of tokens [begin, end).
Tensor keys_of(nn::Model& model, const std::vector<std::uint32_t>& tokens, std::int64_t begin,
    std::int64_t end) {
  const torch::NoGradGuard no_gradient;
  model.eval();
  nn::Batch batch;
  const std::vector<std::int64_t> ids(tokens.begin() + begin, tokens.begin() + end);
  batch.inputs = torch::tensor(ids).unsqueeze(0);
  batch.targets = torch::zeros_like(batch.inputs);
  batch.weight = torch::ones({1, end - begin});
  batch.fresh = torch::ones({1}, torch::kBool);
  const Tensor zero = torch::zeros_like(batch.inputs);
  batch.place = {zero, zero, torch::arange(begin, end).unsqueeze(0)};
  return model.architecture->forward(batch, nullptr).key[0];
}

/// `make` makes a walk over `data` from its first entry.
store::Manifest build(nn::Model& model, const shard::Dataset& data, const std::string& folder,
    const std::function<std::unique_ptr<infer::EntryWalk>()>& make,
    const std::function<bool()>& stop) {
  store::Plan plan;
  plan.model = "m", plan.data = data.fingerprint().hex(), plan.index = "exact";
  plan.width = static_cast<std::uint64_t>(model.architecture->d_key());
  plan.vocabulary = static_cast<std::uint64_t>(model.vocabulary);
  for (bool killed = false;;) {
    store::Builder builder(folder, plan, false);
    const auto walk = make();
    infer::FillCallbacks watch;
    watch.stop = stop;
    if (!infer::fill_store(builder, *walk, walk->range_of({}), folder, torch::kCPU, watch))
      continue;
    if (stop && !killed) {  // all rows are there, but the store is incomplete
      killed = true;
      continue;
    }
    const auto manifest = builder.finish(walk->first_of_documents());
    infer::remove_states(folder);
    return manifest;
  }
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename()] = entry.is_directory() ? "" : core::read_text(entry.path());
  return files;
}

}  // namespace

DOCTEST_TEST_CASE("an entry is a position's key in the window that scores it, and the next token") {
  nn::Model model = tiny::model_of("transformer");
  const auto text = tiny::text_of({50, 1, 40});
  const auto tokens = text.tokens();
  const tiny::Shard shard(text);
  const auto windows = tiny::windows_of(16, 4);
  const auto all = walk_all(model, shard.data(), windows);
  DOCTEST_REQUIRE(all.keys.size(0) == 90);
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->count() == 90);
  for (std::int64_t i = 0; i < 90; ++i) {
    DOCTEST_CHECK(all.labels[i].item<std::int32_t>() ==
                  static_cast<std::int32_t>(tokens[static_cast<std::size_t>(i) + 1]));
    // Windows end at inputs 16, 20, 24, ...
    const std::int64_t end = i < 16 ? 16 : std::min<std::int64_t>(90, 16 + (i - 16) / 4 * 4 + 4);
    const std::int64_t begin = i < 16 ? 0 : 16 + (i - 16) / 4 * 4 - 12;
    const Tensor key = keys_of(model, tokens, begin, end)[i - begin];
    DOCTEST_CHECK(torch::allclose(all.keys[i], key, 1e-4, 1e-5));
  }
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->first_of_documents() ==
                std::vector<std::int64_t>{0, 49, 50});
}

DOCTEST_TEST_CASE(
    "documents that start afresh lose their first token, unless something stands before") {
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(tiny::text_of({20, 1, 9}));
  auto windows = tiny::windows_of(8, 8);
  windows.by_document = true;
  DOCTEST_CHECK(walk_all(model, shard.data(), windows).keys.size(0) == 27);
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->count() == 27);
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->first_of_documents() ==
                std::vector<std::int64_t>{0, 19, 19});
  windows.beginning = 0;
  DOCTEST_CHECK(walk_all(model, shard.data(), windows).keys.size(0) == 30);
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->count() == 30);
  DOCTEST_CHECK(infer::make_walk(model, shard.data(), windows, torch::kCPU)->first_of_documents() ==
                std::vector<std::int64_t>{0, 20, 21});
}

DOCTEST_TEST_CASE(
    "a store that was stopped after every forward has the bytes of one that was not") {
  for (const char* arch : {"transformer", "lstm"}) {
    nn::Model model = tiny::model_of(arch);
    const tiny::Shard shard(tiny::text_of({150, 60}));
    auto windows = tiny::windows_of(16, 8, std::string(arch) == "lstm");
    windows.batch_tokens = 32;
    const TemporaryFolder whole, stopped;
    const auto make = [&] { return infer::make_walk(model, shard.data(), windows, torch::kCPU); };
    build(model, shard.data(), whole.path, make, nullptr);
    int stops = 0;
    build(model, shard.data(), stopped.path, make, [&] { return ++stops > 0; });
    DOCTEST_CHECK(stops > 5);
    DOCTEST_CHECK(contents(whole.path) == contents(stopped.path));
    const store::Datastore opened(stopped.path);
    DOCTEST_CHECK(opened.size() == 209);
    DOCTEST_CHECK(opened.document_of(148) == 0);
    DOCTEST_CHECK(opened.document_of(149) == 1);
  }
}

DOCTEST_TEST_CASE(
    "an entry of a pair is the decoder's key beside its source, and the token that followed") {
  nn::Model model = tiny::model_of("encoder-decoder", "sinusoidal");
  const tiny::Pairs pairs;
  const auto walk = pair_walk(model, pairs);
  std::vector<Tensor> keys, labels, wanted;
  std::vector<std::int64_t> tokens, first;
  while (auto block = walk->next()) {
    block->arrive();
    keys.push_back(block->keys);
    labels.push_back(block->labels);
  }
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i + 1 < pairs.sides.size(); i += 2) {
    const auto& target = pairs.sides[i + 1];
    first.push_back(static_cast<std::int64_t>(tokens.size()));
    tokens.insert(tokens.end(), target.begin(), target.end());
    nn::Batch batch;
    std::vector<std::int64_t> fed{0};
    fed.insert(fed.end(), target.begin(), target.end() - 1);
    batch.inputs = torch::tensor(fed).unsqueeze(0);
    batch.source = torch::tensor(pairs.sides[i]).unsqueeze(0);
    const Tensor zero = torch::zeros_like(batch.inputs);
    batch.place = {zero, zero, torch::arange(batch.inputs.size(1)).unsqueeze(0)};
    wanted.push_back(model.architecture->forward(batch, nullptr).key[0]);
  }
  DOCTEST_CHECK(keys.size() > 2);
  DOCTEST_CHECK(walk->count() == tokens.size());
  DOCTEST_CHECK(walk->first_of_documents() == first);
  DOCTEST_CHECK(torch::equal(torch::cat(labels).to(torch::kInt64), torch::tensor(tokens)));
  DOCTEST_CHECK(tiny::largest_difference(torch::cat(keys), torch::cat(wanted)) < 1e-4);
}

DOCTEST_TEST_CASE(
    "a store of pairs that was stopped after every block has the bytes of one that was not") {
  nn::Model model = tiny::model_of("encoder-decoder", "sinusoidal");
  const tiny::Pairs pairs;
  const TemporaryFolder whole, stopped;
  const auto make = [&] { return pair_walk(model, pairs); };
  build(model, *pairs.data, whole.path, make, nullptr);
  int stops = 0;
  build(model, *pairs.data, stopped.path, make, [&] { return ++stops > 0; });
  DOCTEST_CHECK(stops > 2);
  DOCTEST_CHECK(contents(whole.path) == contents(stopped.path));
  const store::Datastore opened(stopped.path);
  DOCTEST_CHECK(opened.document_of(0) == 0);
  DOCTEST_CHECK(opened.document_of(static_cast<std::int64_t>(opened.size()) - 1) == 29);
  nn::Model reader = tiny::model_of("transformer");
  DOCTEST_CHECK_THROWS_AS(pair_walk(reader, pairs), core::Error);
}

DOCTEST_TEST_CASE(
    "the entries of all parts are those of the whole, to the bit, and in their order") {
  const tiny::Pairs pairs;
  const tiny::Shard shard(tiny::text_of({150, 1, 60, 33}));
  for (const std::string kind : {"windows", "carried", "documents", "carried documents", "pairs"}) {
    nn::Model model = kind == "pairs" ? tiny::model_of("encoder-decoder", "sinusoidal")
                                      : tiny::model_of(kind[0] == 'c' ? "lstm" : "transformer");
    auto windows = tiny::windows_of(16, 8, kind[0] == 'c');
    windows.batch_tokens = 40;
    windows.by_document = kind.find("documents") != kind.npos;
    const auto walk = [&]() -> std::unique_ptr<infer::EntryWalk> {
      if (kind == "pairs") return pair_walk(model, pairs);
      return infer::make_walk(model, shard.data(), windows, torch::kCPU);
    };
    std::vector<Tensor> keys, labels;
    for (const auto all = walk(); auto block = all->next();) {
      block->arrive();
      keys.push_back(block->keys);
      labels.push_back(block->labels);
    }
    const Tensor all_keys = torch::cat(keys), all_labels = torch::cat(labels);
    const auto first = walk()->first_of_documents();
    for (const std::int64_t count : {1, 2, 3, 50}) {
      DOCTEST_CAPTURE(kind);
      DOCTEST_CAPTURE(count);
      std::uint64_t at = 0;
      auto sum = std::vector<std::int64_t>(first.size());
      for (std::int64_t index = 0; index < count; ++index) {
        const auto own = walk();
        const auto range = own->range_of({index, count});
        DOCTEST_CHECK(range.begin == at);
        if (range.begin > 0) own->resume(range.begin, {});
        while (at < range.end) {
          auto block = own->next();
          DOCTEST_REQUIRE(block.has_value());
          block->arrive();
          const auto n = block->labels.size(0), from = static_cast<std::int64_t>(at);
          DOCTEST_CHECK(torch::equal(block->keys, all_keys.narrow(0, from, n)));
          DOCTEST_CHECK(torch::equal(block->labels, all_labels.narrow(0, from, n)));
          at += static_cast<std::uint64_t>(n);
        }
        DOCTEST_CHECK(range.end == at);
        const auto begins = range.documents(first);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += begins[i];
      }
      DOCTEST_CHECK(at == walk()->count());
      DOCTEST_CHECK(sum == first);
    }
  }
}
