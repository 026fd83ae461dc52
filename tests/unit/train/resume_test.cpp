// A run that was stopped or killed and then resumed leaves the same bytes as an uninterrupted run.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "model/checkpoint.h"
#include "model/folder.h"
#include "nn/base/architecture.h"
#include "unit/thrown.h"
#include "unit/train/tiny.h"

namespace {

using train::Job;
using train::KeepOptions;
using train::Outcome;

struct Case {
  const char *batches, *memory, *arch, *positions;
};

// Every order of batches, with a suitable memory, with and without carried State.
constexpr Case kCases[] = {
    {"shuffled", "none", "transformer", "learned"},
    {"shuffled", "local", "transformer", "learned"},
    {"sequential", "local,long", "transformer", "learned"},
    {"runs", "long", "transformer", "rope"},
    {"documents", "local,long", "transformer", "alibi"},
    {"order", "local,ext", "transformer", "learned"},
    {"streams", "none", "transformer", "rope"},
    {"streams", "local,long", "transformer", "learned"},
    {"streams", "none", "lstm", "learned"},
    {"streams", "local,long", "lstm", "learned"},
    {"streams", "none", "transformer-xl", "learned"},
    {"streams", "local,long", "transformer-xl", "learned"},
    {"streams", "local,long", "srupp", "learned"},
    {"streams", "local,long", "mamba2", "learned"},
    {"streams", "local,long", "rwkv7", "learned"},
    {"streams", "local,long", "hybrid", "learned"},
    {"streams", "local,long", "rwkv4", "learned"},
    {"streams", "none", "s4d", "learned"},
    {"streams", "local,long", "h3", "learned"},
    {"streams", "none", "hyena", "learned"},
    {"shuffled", "local,ext", "mosaic", "learned"},
    {"streams", "local,long", "mosaic", "learned"},
    {"shuffled", "local,ext", "mosaic2", "learned"},
    {"streams", "local,long", "mosaic2", "learned"},
};

bool known(const std::string& arch) {
  const auto names = nn::architecture_names();
  return std::find(names.begin(), names.end(), arch) != names.end();
}

Job job_of(const Case& test, const TemporaryFolder& folder) {
  tiny::write_text(folder / "text");
  tiny::write_text(folder / "valid", 200, 2);
  Job job = tiny::job(folder);
  job.model.arch = test.arch;
  job.model.transformer.positions = test.positions;
  job.model.mosaic2 = {.short_term = 4, .delay = 2, .most_delay = 6};
  job.recipe.batches.batches = test.batches;
  job.recipe.objective.memory = test.memory;
  job.recipe.batches.accumulate = 2;
  if (std::string(test.batches) == "order") {
    const shard::Dataset data({folder / "text"});
    std::vector<std::uint64_t> list((data.size() - 1 + 11) / 12);
    for (std::uint64_t i = 0; i < list.size(); ++i) list[i] = (i * 7) % list.size();
    data::write_order(folder / "order", list, list.size(), 12, data.fingerprint().hex());
    job.recipe.batches.order = folder / "order";
  }
  return job;
}

// Changes a checkpoint of step `step` with `change` and writes it back.
template <class F> void tamper(const std::string& path, std::int64_t step, F change) {
  auto checkpoint = model::load_checkpoint(path + "/step-" + std::to_string(step));
  change(checkpoint);
  model::save_checkpoint(path, step, checkpoint);
}

}  // namespace

DOCTEST_TEST_CASE(
    "stopped at any update and continued: the same bytes, for every order of batches") {
  for (const auto& test : kCases) {
    if (!known(test.arch)) continue;
    const std::string name = fmt::format("{} {} {}", test.batches, test.memory, test.arch);
    DOCTEST_CAPTURE(name);
    const TemporaryFolder folder;
    Job job = job_of(test, folder);
    job.valid = folder / "valid";
    job.recipe.valid_every = 4;
    DOCTEST_CHECK(tiny::train(folder / "whole", job) == Outcome::finished);
    for (const std::int64_t at : {1, 6, 13})
      DOCTEST_CHECK(tiny::train(folder / "parts", job, at) == Outcome::stopped);
    DOCTEST_CHECK(tiny::train(folder / "parts", job) == Outcome::finished);
    const auto whole = tiny::files(folder / "whole"), parts = tiny::files(folder / "parts");
    DOCTEST_CHECK((whole == parts));
    DOCTEST_CHECK(whole.count("model.safetensors") == 1);
  }
}

DOCTEST_TEST_CASE("killed between checkpoints and continued: the same bytes, logs cut back") {
  const TemporaryFolder folder;
  const Job job = job_of(kCases[1], folder);
  const KeepOptions keep = {.checkpoint_every = 4, .keep = 2};
  tiny::train(folder / "whole", job, -1, false, keep);
  for (const std::int64_t at : {3, 7, 9, 10, 13})
    DOCTEST_CHECK(tiny::train(folder / "parts", job, at, /*kill=*/true, keep) == Outcome::stopped);
  // A line that was being written when the process died.
  std::ofstream(folder / "parts/metrics.jsonl", std::ios::app) << "{\"step\": 1";
  DOCTEST_CHECK(tiny::train(folder / "parts", job, -1, false, keep) == Outcome::finished);
  const auto whole = tiny::files(folder / "whole"), parts = tiny::files(folder / "parts");
  DOCTEST_CHECK((whole == parts));
  DOCTEST_CHECK(whole.count("step-8/state.json") == 1);
  DOCTEST_CHECK(whole.count("step-12/state.json") == 1);
  DOCTEST_CHECK(whole.count("step-4/state.json") == 0);
  DOCTEST_CHECK(tiny::train(folder / "parts", job, -1, false, keep) == Outcome::was_finished);
}

// A finished run of 14 updates in `path`, and the job that trains it further, to 24.
Job further_job(Job job, const std::string& path, std::int64_t steps = 24) {
  job.folder = path;
  job.recipe.steps = steps;
  return job;
}

DOCTEST_TEST_CASE("a finished run is trained further as a new schedule from its model would") {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const TemporaryFolder folder;
    const Job job = job_of(kCases[i], folder);
    DOCTEST_CHECK(tiny::train(folder / "run", job) == Outcome::finished);
    std::filesystem::copy(folder / "run", folder / "first");
    DOCTEST_CHECK(
        tiny::train(folder / "run", further_job(job, folder / "run")) == Outcome::finished);
    // Ten updates by hand, on the data behind the first 14; the memory needs no warm-up again.
    Job by_hand = job;
    by_hand.from = folder / "first";
    by_hand.recipe.steps = 10;
    by_hand.recipe.objective.plain_warmup = 0;
    nn::start(1, job.seed);
    train::TokenObjective objective(train::prepare(by_hand));
    for (std::int64_t step = 0; step < 10; ++step) objective.update(step, 14 + step);
    const auto further = model::load(folder / "run").model->named_weights();
    const auto expected = objective.weights();
    DOCTEST_REQUIRE(further.size() == expected.size());
    for (std::size_t w = 0; w < further.size(); ++w)
      DOCTEST_CHECK(further[w].second.equal(expected[w].second));
    const auto training = tiny::config(folder / "run")["tessera"]["training"];
    DOCTEST_REQUIRE(training.contains("further"));
    DOCTEST_CHECK(training["steps"] == 24);
    DOCTEST_CHECK(training["further"] == core::Json{14});
    DOCTEST_CHECK(tiny::losses(folder / "run").size() == 9);  // 3, 6, 9, 12, 14, 15, 18, 21, 24
    // Again, and still further; not back.
    DOCTEST_CHECK(
        tiny::train(folder / "run", further_job(job, folder / "run")) == Outcome::was_finished);
    DOCTEST_CHECK(
        tiny::train(folder / "run", further_job(job, folder / "run", 26)) == Outcome::finished);
    DOCTEST_CHECK(
        tiny::config(folder / "run")["tessera"]["training"]["further"] == core::Json{14, 24});
    DOCTEST_CHECK(
        thrown([&] { tiny::train(folder / "run", further_job(job, folder / "run")); }).code == 64);
  }
}

DOCTEST_TEST_CASE("training further that is killed anywhere: the same bytes") {
  for (const std::int64_t kept : {0, 1}) {
    DOCTEST_CAPTURE(kept);
    const TemporaryFolder folder;
    const Job job = job_of(kCases[1], folder);
    const KeepOptions keep = {.checkpoint_every = 7, .keep = kept};
    tiny::train(folder / "whole", job, -1, false, keep);
    for (const char* name : {"parts", "cut", "back"})
      std::filesystem::copy(
          folder / "whole", folder / name, std::filesystem::copy_options::recursive);
    const auto first = tiny::files(folder / "cut");
    const auto further = [&](const std::string& name, std::int64_t at) {
      return tiny::train(folder / name, further_job(job, folder / name), at, at > 0, keep);
    };
    DOCTEST_CHECK(further("whole", -1) == Outcome::finished);
    const auto whole = tiny::files(folder / "whole");
    for (const std::int64_t at : {15, 20, 23}) {
      DOCTEST_CHECK(further("parts", at) == Outcome::stopped);
      // An unfinished run is not trained further than it was asked.
      const auto error =
          thrown([&] { tiny::train(folder / "parts", further_job(job, folder / "parts", 99)); });
      DOCTEST_CHECK(error.code == 64);
      DOCTEST_CHECK(error.text.find("when it has finished, --steps 99") != std::string::npos);
    }
    DOCTEST_CHECK(further("parts", -1) == Outcome::finished);
    DOCTEST_CHECK((tiny::files(folder / "parts") == whole));
    // Between the model's end and the new config.json: it ends as it was, or goes on.
    for (const bool on : {false, true}) {
      const std::string name = on ? "cut" : "back";
      further(name, 15);
      core::write_file(folder / (name + "/config.json"), first.at("config.json"));
      const auto outcome =
          on ? further(name, -1)
             : tiny::train(folder / name, further_job(job, folder / name, 14), -1, false, keep);
      DOCTEST_CHECK(outcome == Outcome::finished);
      DOCTEST_CHECK((tiny::files(folder / name) == (on ? whole : first)));
    }
  }
}

DOCTEST_TEST_CASE("training further keeps the model unless a later validation is better") {
  const TemporaryFolder folder;
  Job job = job_of(kCases[0], folder);
  job.recipe.valid_every = 7;
  job.validation.command = "echo 1";  // never better than the first
  tiny::train(folder / "run", job);
  const auto first = model::load(folder / "run").fingerprint;
  tiny::train(folder / "run", further_job(job, folder / "run"));
  DOCTEST_CHECK((model::load(folder / "run").fingerprint == first));
  DOCTEST_CHECK(tiny::config(folder / "run")["tessera"]["training"]["steps"] == 24);
  // Without a score the last weights are the model.
  job.validation.command = "";
  tiny::train(folder / "run", further_job(job, folder / "run", 26));
  DOCTEST_CHECK_FALSE((model::load(folder / "run").fingerprint == first));
}

DOCTEST_TEST_CASE("the comparison above notices what a checkpoint could forget") {
  const TemporaryFolder folder;
  const Job plain = job_of(kCases[0], folder);
  tiny::train(folder / "whole", plain);
  const auto whole = tiny::files(folder / "whole");
  const auto differs = [&](const char* what, auto change) {
    DOCTEST_CAPTURE(what);
    std::filesystem::remove_all(folder / "broken");
    tiny::train(folder / "broken", plain, 5);
    tamper(folder / "broken", 5, change);
    DOCTEST_CHECK(tiny::train(folder / "broken", plain) == Outcome::finished);
    const auto broken = tiny::files(folder / "broken");
    DOCTEST_CHECK(broken.at("model.safetensors") != whole.at("model.safetensors"));
  };
  differs("moments", [](model::Checkpoint& checkpoint) {
    for (auto& [name, tensor] : checkpoint.tensors)
      if (name.rfind("optimiser.", 0) == 0) tensor.zero_();
  });
  differs("the optimiser's count",
      [](model::Checkpoint& checkpoint) { checkpoint.facts["optimiser"] = {4.0}; });
  differs("the place in the data and in the random numbers",
      [](model::Checkpoint& checkpoint) { checkpoint.facts["step"] = 6; });
  tiny::train(folder / "window", plain, 5);
  tamper(folder / "window", 5,
      [](model::Checkpoint& checkpoint) { checkpoint.facts["window_nats"] = 1.0; });
  tiny::train(folder / "window", plain);
  DOCTEST_CHECK(tiny::files(folder / "window").at("metrics.jsonl") != whole.at("metrics.jsonl"));
}

DOCTEST_TEST_CASE("the comparison above notices a State or a memory that is not carried on") {
  for (const std::size_t i : {std::size_t{6}, std::size_t{7}}) {
    const TemporaryFolder folder;
    Job job = job_of(kCases[i], folder);
    job.recipe.batches.accumulate = 1;
    tiny::train(folder / "whole", job);
    tiny::train(folder / "broken", job, 5);
    tamper(folder / "broken", 5, [](model::Checkpoint& checkpoint) {
      for (auto& [name, tensor] : checkpoint.tensors)
        if (name.rfind("state.", 0) == 0 || name == "memory.0.keys") tensor.zero_();
    });
    tiny::train(folder / "broken", job);
    DOCTEST_CHECK(tiny::files(folder / "whole").at("model.safetensors") !=
                  tiny::files(folder / "broken").at("model.safetensors"));
  }
}

DOCTEST_TEST_CASE(
    "another configuration, other data, another model in the same folder are refused by name") {
  const TemporaryFolder folder;
  const Job job = job_of(kCases[0], folder);
  tiny::train(folder / "run", job, 3);
  const auto refusal = [&](Job other) -> std::string {
    const auto before = tiny::files(folder / "run");
    try {
      tiny::train(folder / "run", other);
    } catch (const core::Error& error) {
      DOCTEST_CHECK(error.code() == core::Code::usage);
      DOCTEST_CHECK((tiny::files(folder / "run") == before));
      return error.what();
    }
    return "not refused";
  };
  Job other = job;
  other.recipe.optimiser.lr = 0.02;
  DOCTEST_CHECK(refusal(other).find("lr 0.01, now 0.02") != std::string::npos);
  other = job;
  other.seed = 7;
  DOCTEST_CHECK(refusal(other).find("seed 1, now 7") != std::string::npos);
  other = job;
  other.model.shape.layers = 3;
  DOCTEST_CHECK(refusal(other).find("layers 2, now 3") != std::string::npos);
  other = job;
  other.shards = {folder / "valid"};
  DOCTEST_CHECK(refusal(other).find("begun with another FILE than") != std::string::npos);
}

DOCTEST_TEST_CASE("a second run in the same folder is refused while the first one goes on") {
  const TemporaryFolder folder;
  const train::RunFolder first(folder / "run");
  try {
    const train::RunFolder second(folder / "run");
    DOCTEST_FAIL("not refused");
  } catch (const core::Error& error) {
    DOCTEST_CHECK(std::string(error.what()).find("another process") != std::string::npos);
  }
}
