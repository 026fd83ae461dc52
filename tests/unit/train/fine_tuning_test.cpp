// A run that starts from a model: its defaults, and what it keeps of the model's folder.

#include <doctest/doctest.h>

#include "core/file_text.h"
#include "unit/temporary_folder.h"
#include "unit/train/tiny.h"

DOCTEST_TEST_CASE("--from: a small rate and one epoch unless others are given or were begun with") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.steps = 2;
  tiny::train(folder / "first", job);
  job.from = folder / "first";
  DOCTEST_CHECK(train::prepare(job).note.empty());
  job.recipe.steps = 0, job.recipe.optimiser.lr = 0;
  const auto run = train::prepare(job);
  DOCTEST_CHECK(run.recipe.optimiser.lr == 2e-5);
  DOCTEST_CHECK(run.recipe.steps == run.order->batches_per_epoch());
  DOCTEST_CHECK(run.note == "--from: rate 2e-5, one epoch; --lr and --steps set others");
  job.recipe.epochs = 2;
  DOCTEST_CHECK(train::prepare(job).recipe.steps == 2 * run.recipe.steps);
  DOCTEST_CHECK(train::prepare(job).note == "--from: rate 2e-5; --lr sets another");
  job.recipe.epochs = 0;
  // A run with other defaults continues with them.
  auto before = job;
  before.recipe.steps = 3, before.recipe.optimiser.lr = 1e-3;
  tiny::train(folder / "begun", before);
  job.folder = folder / "begun";
  const auto resumed = train::prepare(job);
  DOCTEST_CHECK(resumed.recipe.optimiser.lr == 1e-3);
  DOCTEST_CHECK(resumed.recipe.steps == 3);
  DOCTEST_CHECK(resumed.note.empty());
  DOCTEST_CHECK(tiny::train(folder / "begun", job) == train::Outcome::was_finished);
}

DOCTEST_TEST_CASE("--from: the new folder has the ids and the files of the model's") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.steps = 1;
  tiny::train(folder / "first", job);
  auto config = core::read_json(folder / "first/config.json");
  config["eos_token_id"] = {3, 4}, config["pad_token_id"] = 5;
  core::write_file(folder / "first/config.json", core::dump(config));
  core::write_file(folder / "first/generation_config.json", "{\"top_k\": 7}\n");
  job.from = folder / "first";
  tiny::train(folder / "second", job);
  const auto written = tiny::config(folder / "second");
  DOCTEST_CHECK(written["eos_token_id"] == core::Json({3, 4}));
  DOCTEST_CHECK(written["pad_token_id"] == 5);
  DOCTEST_CHECK(core::read_text(folder / "second/generation_config.json") == "{\"top_k\": 7}\n");
  DOCTEST_CHECK(tiny::train(folder / "second", job) == train::Outcome::was_finished);
}
