#include "train/update.h"

#include <doctest/doctest.h>

using doctest::Approx;

namespace {

train::ScheduleOptions plain(const std::string& name) {
  train::ScheduleOptions options;
  options.schedule = name;
  options.warmup = 0;
  return options;
}

}  // namespace

DOCTEST_TEST_CASE("warm-up is linear and ends at the rate, as a share or a number") {
  for (const double warmup : {0.1, 100.0}) {
    auto options = plain("constant");
    options.warmup = warmup;
    options.warmup_init_lr = 0.1;
    const train::Schedule schedule(options, 0.5, 1000);
    DOCTEST_CHECK(schedule.at(0) == Approx(0.1));
    DOCTEST_CHECK(schedule.at(50) == Approx(0.3));
    DOCTEST_CHECK(schedule.at(99) == Approx(0.496));
    DOCTEST_CHECK(schedule.at(100) == Approx(0.5));
    DOCTEST_CHECK(schedule.at(999) == Approx(0.5));
  }
}

DOCTEST_TEST_CASE("cosine: a table of values") {
  auto options = plain("cosine");
  options.min_lr = 0.1;
  options.warmup = 200;
  const train::Schedule schedule(options, 1.1, 1200);
  DOCTEST_CHECK(schedule.at(200) == Approx(1.1));
  DOCTEST_CHECK(schedule.at(450) == Approx(0.6 + 0.5 * std::sqrt(0.5)));
  DOCTEST_CHECK(schedule.at(700) == Approx(0.6));
  DOCTEST_CHECK(schedule.at(1200) == Approx(0.1));
  DOCTEST_CHECK(schedule.at(5000) == Approx(0.1));
}

DOCTEST_TEST_CASE("cosine with restarts: periods grow, rates shrink") {
  auto options = plain("cosine-restarts");
  options.min_lr = 0.1;
  options.period = 100;
  options.lr_shrink = 0.75;
  DOCTEST_SUBCASE("equal periods") {
    const train::Schedule schedule(options, 1.0, 1000);
    DOCTEST_CHECK(schedule.at(0) == Approx(1.0));
    DOCTEST_CHECK(schedule.at(50) == Approx(0.55));
    DOCTEST_CHECK(schedule.at(100) == Approx(0.75));
    DOCTEST_CHECK(schedule.at(150) == Approx(0.75 * 0.55));
    DOCTEST_CHECK(schedule.at(200) == Approx(0.75 * 0.75));
  }
  DOCTEST_SUBCASE("doubling periods begin at 100, 300, 700") {
    options.t_mult = 2;
    const train::Schedule schedule(options, 1.0, 1000);
    DOCTEST_CHECK(schedule.at(99) < 0.11);
    DOCTEST_CHECK(schedule.at(100) == Approx(0.75));
    DOCTEST_CHECK(schedule.at(200) == Approx(0.75 * 0.55));
    DOCTEST_CHECK(schedule.at(299) < 0.1);
    DOCTEST_CHECK(schedule.at(300) == Approx(0.75 * 0.75));
    DOCTEST_CHECK(schedule.at(700) == Approx(0.75 * 0.75 * 0.75));
  }
}

DOCTEST_TEST_CASE(
    "TRIME's 247M run: 286,000 updates of which 16,000 warm up, one period of 270,000") {
  train::ScheduleOptions options;
  options.schedule = "cosine-restarts";
  options.warmup = 16000;
  options.warmup_init_lr = 1e-7;
  options.min_lr = 1e-4;
  options.period = 270000;
  options.t_mult = 2;
  options.lr_shrink = 0.75;
  const train::Schedule schedule(options, 1.0, 286000);
  DOCTEST_CHECK(schedule.at(0) == Approx(1e-7));
  DOCTEST_CHECK(schedule.at(8000) == Approx(0.5).epsilon(1e-6));
  DOCTEST_CHECK(schedule.at(16000) == Approx(1.0));
  DOCTEST_CHECK(schedule.at(151000) == Approx(0.50005));
  DOCTEST_CHECK(schedule.at(285999) == Approx(1e-4).epsilon(1e-3));
}

DOCTEST_TEST_CASE("inverse square root falls from the warm-up's end") {
  auto options = plain("inverse-sqrt");
  options.warmup = 8000;
  options.warmup_init_lr = 1e-7;
  const train::Schedule schedule(options, 5e-4, 200000);
  DOCTEST_CHECK(schedule.at(4000) == Approx(2.5005e-4));
  DOCTEST_CHECK(schedule.at(8000) == Approx(5e-4));
  DOCTEST_CHECK(schedule.at(32000) == Approx(2.5e-4));
  DOCTEST_CHECK(schedule.at(200000) == Approx(1e-4));
}

DOCTEST_TEST_CASE("linear falls evenly to the lowest rate") {
  auto options = plain("linear");
  options.min_lr = 0.1;
  const train::Schedule schedule(options, 0.5, 400);
  DOCTEST_CHECK(schedule.at(0) == Approx(0.5));
  DOCTEST_CHECK(schedule.at(100) == Approx(0.4));
  DOCTEST_CHECK(schedule.at(399) == Approx(0.101));
  DOCTEST_CHECK(schedule.at(500) == Approx(0.1));
}
