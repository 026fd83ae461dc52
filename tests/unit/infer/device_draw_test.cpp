// Tokens drawn by a device's operators, compared with tokens drawn on the host.
#include "infer/generate/generator_draw.h"

#include <doctest/doctest.h>

#include <cmath>

#include "unit/thrown.h"

namespace {

using torch::Tensor;

infer::DrawOptions options_of(double temperature, std::int64_t top_k, double top_p) {
  infer::DrawOptions options;
  options.temperature = temperature, options.top_k = top_k, options.top_p = top_p;
  return options;
}

// Few different values, so that many tokens are equally good; some tokens are impossible.
Tensor rows_of(std::int64_t rows, std::int64_t words) {
  const Tensor coarse = (torch::randn({rows, words}) * 4).round() / 2;
  return coarse.masked_fill(torch::rand({rows, words}) < 0.1, -HUGE_VALF);
}

std::span<const float> row_of(const Tensor& rows, std::int64_t row) {
  return {
      rows.const_data_ptr<float>() + row * rows.size(1), static_cast<std::size_t>(rows.size(1))};
}

}  // namespace

DOCTEST_TEST_CASE(
    "a device's operators draw what the host draws, for all that a draw can be told") {
  torch::manual_seed(4);
  core::Rng rng(7);
  for (const std::int64_t top_k : {0, 1, 3, 40, 5000})
    for (const double top_p : {1.0, 0.9, 0.3, 1e-9})
      for (const double temperature : {0.0, 1e-300, 1e-39, 0.2, 1.0, 7.0}) {
        const auto options = options_of(1, top_k, top_p);
        const Tensor log_p = rows_of(16, 300);
        std::vector<infer::RowDraw> by;
        std::vector<infer::DrawnToken> expected;
        for (std::int64_t row = 0; row < 16; ++row) {
          const double own = row % 5 == 4 ? 0 : temperature;  // texts in parallel
          core::Rng same = rng;
          by.push_back({own, own > 0 ? same.uniform() : 0});
          infer::Draw draw(options_of(own, top_k, top_p));
          const auto token = draw(row_of(log_p, row), rng);
          expected.push_back({token, log_p[row][token].item<double>()});
        }
        const auto got = infer::draw_there(options, log_p, by);
        DOCTEST_CAPTURE(top_k);
        DOCTEST_CAPTURE(top_p);
        DOCTEST_CAPTURE(temperature);
        for (std::size_t row = 0; row < 16; ++row) {
          DOCTEST_CHECK(got[row].token == expected[row].token);
          DOCTEST_CHECK(got[row].log_prob == expected[row].log_prob);
        }
      }
}

DOCTEST_TEST_CASE("the ends of a draw's numbers give words that can be") {
  const double last = std::nextafter(1.0, 0.0);
  Tensor log_p = torch::full({2, 50}, -HUGE_VALF);
  log_p.slice(1, 10, 20) = std::log(0.1);
  for (const auto& [top_k, top_p] : std::vector<std::pair<std::int64_t, double>>{
           {0, 1.0}, {7, 1.0}, {0, 0.65}, {40, 0.65}, {40, 1.0}}) {
    const auto got = infer::draw_there(options_of(1, top_k, top_p), log_p, {{1, 0}, {1, last}});
    DOCTEST_CHECK(got[0].token == 10);
    DOCTEST_CHECK(got[1].token == (top_k == 7 || top_p < 1 ? 16 : 19));
  }
}

DOCTEST_TEST_CASE("what a device gives that is no number is named") {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF})
    for (const double temperature : {0.0, 1.0}) {
      Tensor log_p = torch::full({2, 50}, -1.F);
      if (bad < 0) {
        log_p[1].fill_(bad);
      } else {
        log_p[1][31] = bad;
      }
      const auto draws = [&] {
        infer::draw_there(options_of(1, 5, 0.9), log_p, {{temperature, 0.5}, {temperature, 0.5}});
      };
      const auto error = thrown(draws);
      DOCTEST_CHECK(error.code == 65);
      DOCTEST_CHECK(error.names("not finite"));
    }
}
