// A run's folder and its clock.

#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/build_info.h"
#include "core/file_text.h"
#include "core/io.h"
#include "data.h"
#include "train/trainer.h"
#include "unit/thrown.h"

DOCTEST_TEST_CASE("a run is opened by one process at a time, with its files as they were given") {
  const TemporaryFolder folder;
  const auto group = ranks::Group::alone();
  const std::vector<std::string> files = {folder / "a", folder / "b"};
  {
    const auto run = train::open_run(folder / "run", files, *group);
    DOCTEST_CHECK(run.shards == files);
    DOCTEST_CHECK(run.folder->path() == folder / "run");
    DOCTEST_CHECK(thrown([&] { train::open_run(folder / "run", files, *group); }).code == 73);
  }
  DOCTEST_CHECK(thrown([&] { train::open_run(folder / "run", files, *group); }).code == 0);
}

DOCTEST_TEST_CASE("the clock of a run starts where it is told to") {
  train::KeepOptions keep;
  keep.start_clock();
  DOCTEST_CHECK(!keep.deadline);
  keep.max_time = "1:00:00";
  const auto before = std::chrono::steady_clock::now();
  keep.start_clock();
  DOCTEST_REQUIRE(keep.deadline);
  DOCTEST_CHECK(*keep.deadline - before >= std::chrono::hours(1));
  keep.max_time = "soon";
  const auto error = thrown([&] { keep.start_clock(); });
  DOCTEST_CHECK(error.code == 64);
  DOCTEST_CHECK(error.text.starts_with("--max-time: "));
}

DOCTEST_TEST_CASE(
    "config.json has the builds that trained the model; another build resumes a run") {
  const TemporaryFolder folder;
  const auto own = [&](const core::OrderedJson& builds) {
    return core::OrderedJson{{"tessera", {{"training", {{"steps", 2}}}, {"builds", builds}}}};
  };
  const core::OrderedJson before = {{{"version", "0.0.1"}, {"revision", "1234567"}}};
  const std::string path = folder / "config.json";
  DOCTEST_CHECK(train::builds_of(folder / "new").size() == 1);
  core::write_file(path, core::dump(own(before)));
  std::filesystem::create_directory(folder / "step-1");
  const auto builds = train::builds_of(folder / "");
  DOCTEST_REQUIRE(builds.size() == 2);
  DOCTEST_CHECK(core::Json(builds[0]) == core::Json(before[0]));
  DOCTEST_CHECK(builds[1]["revision"] == core::build::kGit);
  const train::RunFolder run(folder / "");
  run.expect_configuration(own(builds), "");
  DOCTEST_CHECK(core::OrderedJson(core::read_json(path))["tessera"]["builds"] == builds);
  DOCTEST_CHECK(train::builds_of(folder / "") == builds);
}
