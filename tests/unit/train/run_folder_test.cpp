// A run's folder and its clock.

#include "train/run_folder.h"

#include <doctest/doctest.h>

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
