// The paired comparison: no difference, a clear difference, and the rate of false positives.

#include "task/comparison.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "core/rng.h"
#include "unit/thrown.h"

namespace {

using task::ScoreBlock;
using task::ScorePairs;

double laplace(core::Rng& rng) {  // heavier tails than a normal distribution
  const double u = rng.uniform() - 0.5;
  return (u < 0 ? 1 : -1) * std::log1p(-2 * std::abs(u));
}

// Tokens whose differences follow a first-order autoregression.
class Tokens {
 public:
  Tokens(core::Rng& rng, double rho) : rng_(rng), rho_(rho) {
    for (int i = 0; i < 50; ++i) next();
  }
  double next() { return last_ = rho_ * last_ + laplace(rng_); }
  ScoreBlock block(std::uint64_t tokens) {
    ScoreBlock sum{0, 0, tokens};
    for (std::uint64_t i = 0; i < tokens; ++i) sum.b += next();
    return sum;
  }

 private:
  core::Rng& rng_;
  double rho_, last_ = 0;
};

std::vector<ScoreBlock> text_of(
    core::Rng& rng, std::uint64_t tokens, std::uint64_t block, double rho) {
  Tokens made(rng, rho);
  std::vector<ScoreBlock> blocks;
  for (std::uint64_t at = 0; at < tokens; at += block)
    blocks.push_back(made.block(std::min(block, tokens - at)));
  return blocks;
}

// Documents with lengths between `shortest` and 20 times that, with a common part each.
std::vector<ScoreBlock> documents_of(core::Rng& rng, std::size_t n, double common) {
  std::vector<ScoreBlock> documents;
  for (std::size_t i = 0; i < n; ++i) {
    const auto tokens = static_cast<std::uint64_t>(10 * std::exp(rng.uniform() * 3));
    documents.push_back(Tokens(rng, 0.6).block(tokens));
    documents.back().b += common * rng.normal() * static_cast<double>(tokens);
  }
  return documents;
}

// 60 documents whose lengths differ more or less, without scores.
ScorePairs few_long_documents(core::Rng& rng) {
  ScorePairs pairs;
  const double spread = 0.2 + 1.8 * rng.uniform();
  for (int i = 0; i < 60; ++i)
    pairs.by_document.push_back(
        {0, 0, 5 + static_cast<std::uint64_t>(100 * std::exp(spread * rng.normal()))});
  return pairs;
}

// Scores a document: a difference of 0.5 as a whole, and tokens of standard deviation 1.8.
void score(ScoreBlock& document, core::Rng& rng) {
  const double whole = 0.5 * rng.normal() * static_cast<double>(document.tokens);
  document.b = whole + 1.8 / std::sqrt(2 / (1 - 0.36)) * Tokens(rng, 0.6).block(document.tokens).b;
}

struct Rates {
  double rejected = 0, better = 0, covered = 0;  // percent
};

// Returns TESSERA_SIMULATED, the number of pairs of a longer simulation, or `usual`.
int simulated(int usual) {
  const char* const given = std::getenv("TESSERA_SIMULATED");
  return given ? std::atoi(given) : usual;
}

Rates rates(int pairs, const std::function<task::Comparison(core::Rng&)>& compare) {
  Rates found;
  for (int i = 0; i < pairs; ++i) {
    core::Rng rng(17, static_cast<std::uint64_t>(i));
    const auto one = compare(rng);
    found.rejected += one.p < 0.05;
    found.better += one.p < 0.05 && one.difference < 0;  // --fail-unless-better succeeds
    found.covered += one.low <= 0 && 0 <= one.high;
  }
  for (double* rate : {&found.rejected, &found.better, &found.covered}) *rate *= 100.0 / pairs;
  return found;
}

// 4 to 6.5 %, and 93.5 to 96.5 %, widened by the simulation's standard error.
void check(const Rates& found, int pairs) {
  const double error = 100 * std::sqrt(0.05 * 0.95 / pairs);
  DOCTEST_CHECK(found.rejected > 4 - error);
  DOCTEST_CHECK(found.rejected < 6.5 + error);
  DOCTEST_CHECK(found.covered > 93.5 - error);
  DOCTEST_CHECK(found.covered < 96.5 + error);
  DOCTEST_CHECK(found.better > 1.5);
  DOCTEST_CHECK(found.better < 3.5);
}

}  // namespace

DOCTEST_TEST_CASE("Student's t: tables") {
  // Abramowitz & Stegun, table 26.10; one degree of freedom is Cauchy's distribution.
  DOCTEST_CHECK(task::t_quantile(0.95, 1) == doctest::Approx(12.706).epsilon(1e-4));
  DOCTEST_CHECK(task::t_quantile(0.95, 9) == doctest::Approx(2.262).epsilon(2e-4));
  DOCTEST_CHECK(task::t_quantile(0.99, 12) == doctest::Approx(3.055).epsilon(2e-4));
  DOCTEST_CHECK(task::t_quantile(0.5, 60) == doctest::Approx(0.679).epsilon(1e-3));
  DOCTEST_CHECK(task::t_quantile(0.95, 1e9) == doctest::Approx(1.959964));
  DOCTEST_CHECK(task::t_quantile(0.95, 99'999) == doctest::Approx(1.95999).epsilon(1e-5));
  DOCTEST_CHECK(task::t_two_sided(0, 5) == 1);
  DOCTEST_CHECK(task::t_two_sided(-1, 1) == doctest::Approx(0.5));
  DOCTEST_CHECK(task::t_two_sided(1e6, 12) < 1e-60);
}

DOCTEST_TEST_CASE("equal scores: no difference, and chance explains it") {
  core::Rng rng(1);
  auto blocks = text_of(rng, 2000, 20, 0);
  for (ScoreBlock& block : blocks) block.a = block.b;
  for (const auto& found :
      {task::compare_consecutive(blocks, 0.95), task::compare_documents(blocks, 0.95)}) {
    DOCTEST_CHECK(found.difference == 0);
    DOCTEST_CHECK((found.low == 0 && found.high == 0));
    DOCTEST_CHECK(found.p == 1);
  }
}

DOCTEST_TEST_CASE("a clear difference: its size, an interval around it, a small p") {
  core::Rng rng(2);
  const auto blocks = text_of(rng, 20'000, 100, 0);
  auto better = blocks;
  for (ScoreBlock& block : better) block.b -= 0.1 * static_cast<double>(block.tokens);
  const double error = std::sqrt(2.0 / 20'000);  // of the mean, with variance 2
  for (const bool documents : {false, true}) {
    const auto found =
        documents ? task::compare_documents(better, 0.95) : task::compare_consecutive(better, 0.95);
    DOCTEST_CHECK(std::abs(found.difference + 0.1) < 3 * error);
    DOCTEST_CHECK(found.high - found.low == doctest::Approx(2 * 1.98 * error).epsilon(0.3));
    DOCTEST_CHECK(found.p < 1e-6);
    DOCTEST_CHECK(found.high < 0);
  }
}

DOCTEST_TEST_CASE("ten blocks of one length: the t test of their means") {
  std::vector<ScoreBlock> blocks;
  double mean = 0, squares = 0;
  const double values[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const double value : values) mean += value / 10;
  for (const double value : values) squares += (value - mean) * (value - mean);
  for (const double value : values) blocks.push_back({0, value * 1000, 1000});
  const double error = std::sqrt(squares / 9 / 10);
  for (const auto& found :
      {task::compare_consecutive(blocks, 0.95), task::compare_documents(blocks, 0.95)}) {
    DOCTEST_CHECK(found.freedom == doctest::Approx(9));
    DOCTEST_CHECK(found.difference == doctest::Approx(mean));
    DOCTEST_CHECK(found.high - mean == doctest::Approx(2.2622 * error).epsilon(1e-4));
    DOCTEST_CHECK(mean - found.low == doctest::Approx(2.2622 * error).epsilon(1e-4));
  }
}

DOCTEST_TEST_CASE("chance is taken for a difference one time in twenty, however short the text") {
  struct Row {
    std::uint64_t tokens, block;  // 0: chosen by the text's length
    double rho;
    int pairs = 2000;
  };
  for (const Row& row : {Row{512, 0, 0.8}, {950, 0, 0}, {950, 8, 0.8}, {1536, 0, 0.8},
           {1024, 102, 0.6}, {5120, 512, 0.6, 1000}, {10'240, 0, 0.6, 500}}) {
    DOCTEST_CAPTURE(row.tokens);
    DOCTEST_CAPTURE(row.block);
    DOCTEST_CAPTURE(row.rho);
    const std::uint64_t block = row.block > 0 ? row.block : task::block_for(row.tokens);
    check(rates(row.pairs,
              [&](core::Rng& rng) {
                return task::compare_consecutive(text_of(rng, row.tokens, block, row.rho), 0.95);
              }),
        row.pairs);
  }
}

DOCTEST_TEST_CASE("chance is taken for a difference one time in twenty, however few documents") {
  for (const std::size_t n : {12, 40})
    for (const double common : {0.0, 0.3}) {
      DOCTEST_CAPTURE(n);
      DOCTEST_CAPTURE(common);
      check(rates(2000,
                [&](core::Rng& rng) {
                  std::vector<ScoreBlock> documents;
                  do documents = documents_of(rng, n, common);
                  while (task::effective_documents(documents) < task::kLeastEffectiveDocuments);
                  return task::compare_documents(documents, 0.95);
                }),
          2000);
    }
}

DOCTEST_TEST_CASE(
    "a few long documents carry the text: chance is taken for a difference in 4 to 7 %") {
  struct Range {
    double least, most;
  };
  const int pairs_a_case = simulated(1000);
  const double error = 100 * std::sqrt(0.05 * 0.95 / pairs_a_case);
  for (const Range& range : {Range{6, 12}, {12, 20}, {20, 40}, {40, 60}}) {
    DOCTEST_CAPTURE(range.least);
    const auto found = rates(pairs_a_case, [&](core::Rng& rng) {
      ScorePairs pairs;
      do pairs = few_long_documents(rng);
      while (task::effective_documents(pairs.by_document) < range.least ||
             task::effective_documents(pairs.by_document) >= range.most);
      for (ScoreBlock& document : pairs.by_document) score(document, rng);
      return task::compare(pairs, task::block_choice_of("auto"), 0.95);
    });
    DOCTEST_CHECK(found.rejected > 4 - error);
    DOCTEST_CHECK(found.rejected < 7 + error);
  }
}

DOCTEST_TEST_CASE("several documents that count as fewer than 6: no p, and a note") {
  core::Rng rng(4);
  ScorePairs pairs;
  pairs.by_tokens = text_of(rng, 2000, 31, 0), pairs.tokens = 2000, pairs.block = 31;
  pairs.by_document = {{0, 1, 500}, {0, 1, 1400}, {0, 1, 100}};
  const auto automatic = task::block_choice_of("auto"), blocks = task::block_choice_of("31");
  const auto unknown = task::compare(pairs, automatic, 0.95);
  DOCTEST_CHECK((std::isnan(unknown.p) && std::isnan(unknown.low) && std::isnan(unknown.high)));
  DOCTEST_CHECK(
      task::figures(unknown, pairs, automatic).dump().find("\"p\":null") != std::string::npos);
  DOCTEST_CHECK(task::caution(pairs, automatic).find("p cannot be known") != std::string::npos);
  DOCTEST_CHECK(task::compare(pairs, blocks, 0.95).p <= 1);
  DOCTEST_CHECK(task::caution(pairs, blocks).find("p is too small") != std::string::npos);
  pairs.by_document.resize(1);
  DOCTEST_CHECK(task::compare(pairs, automatic, 0.95).p <= 1);
  DOCTEST_CHECK(task::caution(pairs, automatic).empty());
}

DOCTEST_TEST_CASE("seeds: the t test of the pairs' mean differences") {
  const std::vector<ScoreBlock> pairs = {
      {3000, 3010, 1000}, {3005, 3035, 1000}, {2990, 3010, 1000}};
  const auto found = task::compare_seeds(pairs, 0.95);  // differences .01, .03, .02
  const double error = 0.01 / std::sqrt(3);
  DOCTEST_CHECK(found.difference == doctest::Approx(0.02));
  DOCTEST_CHECK(found.loss_a == doctest::Approx(8995.0 / 3000));
  DOCTEST_CHECK(found.freedom == 2);
  DOCTEST_CHECK(found.standard_error == doctest::Approx(error));
  DOCTEST_CHECK(found.high == doctest::Approx(0.02 + 4.3027 * error).epsilon(1e-4));
  DOCTEST_CHECK(found.p == doctest::Approx(task::t_two_sided(0.02 / error, 2)));
  const auto copies = [](double b) {
    return thrown([=] { task::compare_seeds({{0.1, b, 10}, {0.1, b, 10}, {0.1, b, 10}}, 0.95); });
  };
  DOCTEST_CHECK(copies(0.1).code == 0);
  DOCTEST_CHECK(copies(0.3).names("the 3 seeds have the same losses"));
  DOCTEST_CHECK(thrown([] {
    task::compare_seeds({{0, INFINITY, 1}, {0, 1, 1}}, 0.95);
  }).code == 65);
}

DOCTEST_TEST_CASE("chance is taken for a difference one time in twenty, however few seeds") {
  const int pairs_a_case = simulated(4000);
  constexpr std::uint64_t kTokens = 300;
  const double error = 100 * std::sqrt(0.05 * 0.95 / pairs_a_case);
  for (const int seeds : {3, 5, 10})
    for (const double of_seeds : {0.0, 0.3}) {  // beside about 0.2 of the tokens
      DOCTEST_CAPTURE(seeds);
      DOCTEST_CAPTURE(of_seeds);
      const auto found = rates(pairs_a_case, [&](core::Rng& rng) {
        std::vector<ScoreBlock> pairs;
        for (int i = 0; i < seeds; ++i) {
          pairs.push_back(Tokens(rng, 0.6).block(kTokens));
          pairs.back().a = Tokens(rng, 0.6).block(kTokens).b;
          for (double* sum : {&pairs.back().a, &pairs.back().b})
            *sum += of_seeds * rng.normal() * static_cast<double>(kTokens);
        }
        return task::compare_seeds(pairs, 0.95);
      });
      DOCTEST_CHECK(found.rejected > 4 - error);
      DOCTEST_CHECK(found.rejected < 6 + error);
      DOCTEST_CHECK(found.covered > 94 - error);
      DOCTEST_CHECK(found.covered < 96 + error);
    }
}

DOCTEST_TEST_CASE("too little to compare is refused") {
  core::Rng rng(3);
  const auto consecutive = [](const std::vector<ScoreBlock>& blocks) {
    return thrown([&] { task::compare_consecutive(blocks, 0.95); });
  };
  const auto documents = [](const std::vector<ScoreBlock>& blocks) {
    return thrown([&] { task::compare_documents(blocks, 0.95); });
  };
  DOCTEST_CHECK(consecutive({}).code == 65);
  DOCTEST_CHECK(documents({}).code == 65);
  DOCTEST_CHECK(consecutive(text_of(rng, 511, 8, 0)).names("has 511 tokens"));
  DOCTEST_CHECK(consecutive(text_of(rng, 900, 100, 0)).names("10 whole blocks"));
  DOCTEST_CHECK(consecutive(text_of(rng, 1000, 100, 0)).code == 0);

  // A rest of a few tokens is no block.
  DOCTEST_CHECK(consecutive(text_of(rng, 910, 100, 0)).names("there are 9"));
  DOCTEST_CHECK(task::compare_consecutive(text_of(rng, 1024, 102, 0), 0.95).freedom == 9);
  DOCTEST_CHECK(documents(text_of(rng, 500, 100, 0)).names("has 5 documents"));
  DOCTEST_CHECK(documents(text_of(rng, 600, 100, 0)).code == 0);
  auto uneven = text_of(rng, 1000, 10, 0);
  uneven.push_back({0, 1, 1000});
  DOCTEST_CHECK(documents(uneven).names("count as 4.0 of equal length"));
  // A number below the least one is not printed as it.
  auto nearly = text_of(rng, 600, 100, 0);
  nearly.back().tokens = 98;
  DOCTEST_CHECK(documents(nearly).names("count as 5.9 of equal length"));
  uneven.back() = {0, INFINITY, 10};
  DOCTEST_CHECK(documents(uneven).names("probability 0"));
  DOCTEST_CHECK(consecutive(uneven).names("probability 0"));
}
