#pragma once
// Makes stores of random keys in a temporary folder for the tests.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "store/builder.h"
#include "unit/temporary_folder.h"

struct StoreFolder {
  TemporaryFolder around;
  std::filesystem::path path = around.path / "store";
};

/// Returns the files of a folder by name, with their contents.
inline std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = core::read_text(entry.path());
  return files;
}

struct StoreRows {
  std::vector<float> keys;
  std::vector<std::int32_t> labels;
};

inline constexpr std::uint64_t kStoreWidth = 16, kStoreVocabulary = 100;

/// Returns normal keys of width kStoreWidth, and labels below kStoreVocabulary.
inline StoreRows random_rows(std::size_t n, std::uint64_t seed) {
  core::Rng rng(seed);
  StoreRows rows;
  for (std::size_t i = 0; i < n * kStoreWidth; ++i)
    rows.keys.push_back(static_cast<float>(rng.normal()));
  for (std::size_t i = 0; i < n; ++i)
    rows.labels.push_back(static_cast<std::int32_t>(rng.below(kStoreVocabulary)));
  return rows;
}

inline store::Plan make_plan(const std::string& index = "exact", const std::string& data = "data") {
  store::Plan plan;
  plan.model = "model-a", plan.tokenizer = "tokenizer-a";
  plan.width = kStoreWidth, plan.vocabulary = kStoreVocabulary;
  plan.index = index, plan.data = data;
  plan.windows["window"] = 64, plan.windows["stride"] = 32;
  return plan;
}

/// Adds rows in blocks and commits each block; documents start at `first_rows`.
inline store::Manifest build_store(const std::string& folder, const store::Plan& plan,
    const StoreRows& rows, const std::vector<std::int64_t>& first_rows, bool append = false,
    std::size_t block = 100) {
  store::Builder builder(folder, plan, append);
  for (std::size_t begin = builder.rows(); begin < rows.labels.size(); begin += block) {
    const std::size_t n = std::min(block, rows.labels.size() - begin);
    builder.add({&rows.keys[begin * kStoreWidth], n * kStoreWidth}, {&rows.labels[begin], n});
    builder.commit(begin + n);
  }
  return builder.finish(first_rows);
}
