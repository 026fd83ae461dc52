// The choice by each rule, and the fraction of right choices.
#include <doctest/doctest.h>

#include "core/rng.h"
#include "task/score_request.h"

namespace {

using Predictions = std::vector<std::pair<std::string, std::size_t>>;

}  // namespace

DOCTEST_TEST_CASE("sum, byte, token and mutual information differ, of equals the first is taken") {
  std::vector<task::ChoiceScore> choices = {
      {-4, 2, 4, {}}, {-6, 2, 12, {}}, {-5, 4, 8, {}}, {-4, 2, 4, {}}};
  DOCTEST_CHECK(task::predict(choices) == Predictions{{"sum", 0}, {"byte", 1}, {"token", 2}});
  choices[0].domain_log_prob = -2;
  DOCTEST_CHECK(task::predict(choices).size() == 3);
  choices[1].domain_log_prob = choices[2].domain_log_prob = -4;
  choices[3].domain_log_prob = -9;
  DOCTEST_CHECK(
      task::predict(choices)[3] == std::pair<std::string, std::size_t>{"mutual_information", 3});
}

DOCTEST_TEST_CASE("an accuracy has an interval around it, however few answers there are") {
  std::vector<bool> right;
  for (int i = 0; i < 200; ++i) right.push_back(i % 4 == 0);
  const auto many = task::accuracy(right);
  DOCTEST_CHECK(many.share == doctest::Approx(0.25));
  // Wilson's interval of 50 in 200.
  DOCTEST_CHECK(*many.low == doctest::Approx(0.19507).epsilon(1e-4));
  DOCTEST_CHECK(*many.high == doctest::Approx(0.31437).epsilon(1e-4));
  const auto all = task::accuracy({true, true, true}), none = task::accuracy({false, false});
  DOCTEST_CHECK((*all.low > 0.3 && *all.low < 0.5 && *all.high == 1));
  DOCTEST_CHECK((*none.low == 0 && *none.high > 0.5 && *none.high < 0.8));
  DOCTEST_CHECK(!task::accuracy({true}).low);
  DOCTEST_CHECK(task::accuracy({true}).share == 1);
}

DOCTEST_TEST_CASE("an accuracy's interval holds the true share 19 times in 20") {
  for (const std::size_t n : {5, 10, 30, 100}) {
    DOCTEST_CAPTURE(n);
    int covered = 0;
    core::Rng rng(n);
    for (int i = 0; i < 4000; ++i) {
      const double share = 0.1 + 0.8 * rng.uniform();
      std::vector<bool> right(n);
      for (std::size_t j = 0; j < n; ++j) right[j] = rng.uniform() < share;
      const auto found = task::accuracy(right);
      covered += *found.low <= share && share <= *found.high;
    }
    DOCTEST_CHECK(covered > 4000 * 0.935);
    DOCTEST_CHECK(covered < 4000 * 0.965);
  }
}
