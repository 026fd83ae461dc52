// The moons' periods and positions.

#include <doctest/doctest.h>

#include "task/sequences.h"

DOCTEST_TEST_CASE("nine triples, by their common period") {
  const auto all = task::chosen_periods();
  std::vector<double> common;
  for (const auto& periods : all) common.push_back(task::common_period(periods));
  DOCTEST_CHECK(common == std::vector<double>{2, 3, 3, 3, 3, 5, 6, 6, 6});
  DOCTEST_CHECK(all.back() == task::Periods{1, 1.5, 2});
}

DOCTEST_TEST_CASE("each moon comes back after its period, all after the common one") {
  const auto rows = task::observe({0.5, 1, 1.5}, 8, 0.3, 0, 25);
  const auto at = [&](std::size_t t, std::size_t c) { return rows[t * 6 + c]; };
  for (std::size_t c = 0; c < 6; ++c) {
    const std::size_t period = c < 2 ? 4 : c < 4 ? 8 : 12;
    DOCTEST_CHECK(at(period, c) == doctest::Approx(at(0, c)).epsilon(1e-5));
    DOCTEST_CHECK(at(24, c) == doctest::Approx(at(0, c)).epsilon(1e-5));
  }
  DOCTEST_CHECK(at(0, 0) == doctest::Approx(std::sin(0.3)));
  DOCTEST_CHECK(at(0, 1) == doctest::Approx(std::cos(0.3)));
  DOCTEST_CHECK(task::observe({0.5, 1, 1.5}, 8, 0.3, 5, 1)[0] == at(5, 0));
}
