#pragma once
// A small job on a small text, and the contents of its folder afterwards.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "core/io.h"
#include "core/rng.h"
#include "nn/arch/model.h"
#include "nn/base/runtime.h"
#include "train/token_objective.h"
#include "train/trainer.h"
#include "unit/train/data.h"

namespace tiny {

/// A text of 40 types that repeats itself often enough to be learned, in documents of 2 to 90
/// tokens.
inline void write_text(
    const std::string& path, std::uint64_t n = 1500, std::uint64_t seed = 1, bool marked = false) {
  core::Rng rng(seed);
  std::vector<std::uint64_t> tokens, lengths;
  while (tokens.size() < n)
    tokens.push_back(tokens.size() % 3 ? (tokens.back() * 7 + 3) % 40 : rng.below(40));
  for (std::uint64_t left = n; left > 0;) {
    lengths.push_back(std::min(left, 2 + rng.below(89)));
    left -= lengths.back();
  }
  auto header = data::tokens_header(40);
  header.marked = marked;
  data::write_shard(path, header, tokens, lengths);
}

/// Two layers of width 16, segments of 12, with dropout; 14 steps.
inline train::Job job(const TemporaryFolder& folder) {
  train::Job job;
  job.shards = {folder / "text"};
  job.model.shape.layers = 2;
  job.model.shape.init = "gpt2", job.model.vocabulary.scale_embedding = false;
  job.model.shape.d_model = 16;
  job.model.shape.heads = 2;
  job.model.shape.dropout = 0.2;
  job.model.transformer.context = 16;
  auto& recipe = job.recipe;
  recipe.batches.segment = 12;
  recipe.batches.batch = 6;
  recipe.steps = 14;
  recipe.log_every = 3;
  recipe.optimiser.lr = 0.01;
  recipe.schedule.warmup = 2;
  recipe.objective.plain_warmup = 2;
  return job;
}

struct Stop {};

/// Trains until step `stop_at`, or to the end. It stops by a request or, with `kill`, by an
/// exception, as if the process had died.
inline train::Outcome train(const std::string& path, const train::Job& job,
    std::int64_t stop_at = -1, bool kill = false, train::KeepOptions keep = {}) {
  nn::start(1, job.seed);
  const train::RunFolder folder(path);
  train::TokenObjective objective(train::prepare(job));
  std::int64_t step = -1;
  train::Callbacks watch;
  watch.stop = [&] { return !kill && step == stop_at && stop_at >= 0; };
  watch.progress = [&](const train::Callbacks::Progress& now) {
    step = now.step;
    if (kill && step == stop_at) throw Stop{};
  };
  try {
    return train::train_in(folder, objective, keep, watch);
  } catch (const Stop&) { return train::Outcome::stopped; }
}

/// Returns name -> bytes of all files, without values that depend on the clock.
inline std::map<std::string, std::string> files(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().filename() != "timings.jsonl")
      files[std::filesystem::relative(entry.path(), path).string()] =
          core::read_text(entry.path().string());
  }
  return files;
}

inline core::Json config(const std::string& path) {
  return core::parse_json(core::read_text(path + "/config.json"), path);
}

/// Returns the losses of metrics.jsonl in order.
inline std::vector<double> losses(const std::string& path, const char* key = "loss") {
  std::vector<double> out;
  std::string rest = core::read_text(path + "/metrics.jsonl");
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = core::parse_json(rest.substr(0, end), path);
    if (line.contains(key)) out.push_back(line[key].get<double>());
    rest.erase(0, end + 1);
  }
  return out;
}

}  // namespace tiny
