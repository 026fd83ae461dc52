// Rows of a data set as batches.
#include "batch/rows.h"

#include <doctest/doctest.h>

#include "unit/thrown.h"
#include "unit/train/data.h"

DOCTEST_TEST_CASE("a row is its tokens and those after them, padded to the longest row") {
  const TemporaryFolder folder;
  data::write_counting(folder / "data", 20);
  const shard::Dataset data({folder / "data"});
  const auto made = batch::read_rows(data, {{3, 2, 5, 6, false}, {10, 4, 7, 8}, {0, 0}});
  DOCTEST_CHECK(made.inputs.equal(torch::tensor({{3, 4, 0, 0}, {10, 11, 12, 13}, {0, 0, 0, 0}})));
  DOCTEST_CHECK(made.targets.equal(torch::tensor({{4, 5, 0, 0}, {11, 12, 13, 14}, {0, 0, 0, 0}})));
  DOCTEST_CHECK(made.weight.sum(1).equal(torch::tensor({2.0f, 4.0f, 0.0f})));
  DOCTEST_CHECK(
      made.place.run.equal(torch::tensor({{5, 5, -1, -1}, {7, 7, 7, 7}, {-1, -1, -1, -1}})));
  DOCTEST_CHECK(made.place.segment[1].equal(torch::tensor({8, 8, 8, 8})));
  DOCTEST_CHECK(made.place.position[1].equal(torch::tensor({10, 11, 12, 13})));
  DOCTEST_CHECK(made.fresh.equal(torch::tensor({false, true, true})));
}

DOCTEST_TEST_CASE("a BOS token may be before the data, and context is not scored") {
  const TemporaryFolder folder;
  data::write_counting(folder / "data", 20);
  const shard::Dataset data({folder / "data"});
  const batch::Row row{~std::uint64_t{0}, 3, 0, 0, true, 1, 9};
  const auto made = batch::read_rows(data, {row}, 10);
  DOCTEST_CHECK(made.inputs.equal(torch::tensor({{9, 0, 1}})));
  DOCTEST_CHECK(made.targets.equal(torch::tensor({{0, 1, 2}})));
  DOCTEST_CHECK(made.weight.equal(torch::tensor({{0.0f, 1.0f, 1.0f}})));
  DOCTEST_CHECK(made.place.position.equal(torch::tensor({{-1, 0, 1}})));
  const auto failure = thrown([&] { batch::read_rows(data, {row}, 9); });
  DOCTEST_CHECK(failure.code == 65);
  DOCTEST_CHECK(failure.names("token 9 is outside the model's vocabulary of 9"));
}
