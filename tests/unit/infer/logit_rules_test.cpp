// The logits from which the next token is drawn, by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "infer/generate/generator_options.h"
#include "unit/thrown.h"

namespace {

using Row = std::vector<float>;

Row changed(infer::LogitRules rules, const std::vector<std::int64_t>& prompt,
    const std::vector<std::int64_t>& text, float log_z = 0) {
  Row row{-1, -2, -3, -4};
  infer::ChangedLogits logits(std::make_shared<const infer::LogitRules>(std::move(rules)), prompt);
  for (const auto token : text) logits.add(token);
  logits.apply(row, log_z);
  return row;
}

}  // namespace

DOCTEST_TEST_CASE("penalties of frequency and presence see the generated text only") {
  DOCTEST_CHECK(changed({.frequency = 0.5}, {0, 1}, {2, 2, 3}) == Row{-1, -2, -4, -4.5});
  DOCTEST_CHECK(changed({.presence = 2}, {0, 1}, {2, 2, 3}) == Row{-1, -2, -5, -6});
  DOCTEST_CHECK(changed({.frequency = 0.5, .presence = -1}, {0}, {3}) == Row{-1, -2, -3, -3.5});
}

DOCTEST_TEST_CASE("the penalty of repetition sees the prompt too, and the sign of a logit") {
  DOCTEST_CHECK(changed({.repetition = 2}, {0}, {2, 2}) == Row{-2, -2, -6, -4});
  // Logits 1.5, 0.5, -0.5, -1.5: log p and the normaliser of 2.5.
  DOCTEST_CHECK(changed({.repetition = 2}, {0}, {2}, 2.5) == Row{-1.75, -2, -3.5, -4});
}

DOCTEST_TEST_CASE(
    "biases and allowed tokens; penalties apply after them; a row keeps a best token") {
  DOCTEST_CHECK(changed({.biases = {{1, 3}, {3, -1}}}, {}, {}) == Row{-1, 1, -3, -5});
  const auto only = changed({.allowed = {1, 3}, .presence = 1}, {}, {3});
  DOCTEST_CHECK(only[1] == -2);
  DOCTEST_CHECK(only[3] == -5);
  DOCTEST_CHECK(only[0] < -1e9F);
  DOCTEST_CHECK(std::isfinite(only[2]));
  for (const float x : changed({.allowed = {1}, .biases = {{1, -1e9}}, .repetition = 2}, {}, {1}))
    DOCTEST_CHECK(std::isfinite(x));
}

DOCTEST_TEST_CASE("biases of the command line; ids outside of the vocabulary") {
  infer::LogitOptions options;
  options.biases = {"7:-1.5", "8:100"};
  using Biases = std::vector<std::pair<std::int64_t, double>>;
  DOCTEST_CHECK(options.rules().biases == Biases{{7, -1.5}, {8, 100}});
  for (const char* wrong : {"", "7", "7:", ":1", "a:1", "7:x", "7:1x", "7:nan", "7:1e300"}) {
    options.biases = {wrong};
    DOCTEST_CHECK(thrown([&] { options.rules(); }).names("takes ID:X"));
  }
  infer::LogitRules rules;
  rules.allowed = {255};
  rules.check(256, /*flags=*/true);
  rules.allowed = {256};
  DOCTEST_CHECK(thrown([&] { rules.check(256, /*flags=*/true); }).text ==
                "--allowed-token-ids: 256 is not a token id; the tokenizer has 256 tokens");
}
