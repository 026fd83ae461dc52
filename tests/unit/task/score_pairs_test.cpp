// Two files of scores side by side.

#include "task/score_pairs.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include "core/io.h"
#include "task/token_scores.h"
#include "unit/thrown.h"

namespace {

// Scores of `documents` documents of four tokens each, in a file that goes with it.
struct Scores {
  std::string path = "/tmp/score-pairs.XXXXXX";
  explicit Scores(std::uint64_t documents, double nats, std::uint32_t first_token = 0) {
    ::close(::mkstemp(path.data()));
    core::Output out(path);
    task::TokenScoreWriter writer(out);
    for (std::uint64_t i = 0; i < 4 * documents; ++i) {
      task::TokenScore score;
      score.position = i, score.document = i / 4;
      score.token = first_token + static_cast<std::uint32_t>(i % 4);
      score.nats = nats + static_cast<double>(i % 2);
      writer.write(score);
    }
    out.commit();
  }
  ~Scores() { ::unlink(path.c_str()); }
};

}  // namespace

DOCTEST_TEST_CASE("blocks of tokens and of documents hold the sums of both") {
  const Scores a(60, 1), b(60, 2);
  const auto pairs = task::read_score_pairs(a.path, b.path, 7);
  DOCTEST_CHECK(pairs.tokens == 240);
  DOCTEST_CHECK(pairs.by_document.size() == 60);
  DOCTEST_CHECK(pairs.by_tokens.size() == 35);  // the last has 2
  DOCTEST_CHECK(pairs.by_tokens.back().tokens == 2);
  DOCTEST_CHECK(pairs.by_document[3].a == doctest::Approx(6));
  DOCTEST_CHECK(pairs.by_document[3].b == doctest::Approx(10));
  double sum = 0;
  for (const auto& block : pairs.by_tokens) sum += block.a;
  DOCTEST_CHECK(sum == doctest::Approx(360));
  const auto choice = task::block_choice_of("auto");
  const auto found = task::compare(pairs.by_document, 100, 0.95, 1, 1);
  const auto figures = task::figures(found, pairs, choice);
  DOCTEST_CHECK(figures["block"] == "document");
  DOCTEST_CHECK(figures["blocks"] == 60);
  DOCTEST_CHECK(figures["difference"].get<double>() == doctest::Approx(1));
}

DOCTEST_TEST_CASE("what is drawn together: as asked, or documents where there are enough") {
  const Scores few(49, 1), many(50, 1);
  const auto scarce = task::read_score_pairs(few.path, few.path, 512);
  const auto plenty = task::read_score_pairs(many.path, many.path, 512);
  DOCTEST_CHECK(!task::block_choice_of("auto").documents(scarce));
  DOCTEST_CHECK(task::block_choice_of("auto").documents(plenty));
  DOCTEST_CHECK(task::block_choice_of("document").documents(scarce));
  DOCTEST_CHECK(!task::block_choice_of("1K").documents(plenty));
  DOCTEST_CHECK(task::block_choice_of("1K").tokens == 1000);
  DOCTEST_CHECK(thrown([] { task::block_choice_of("0"); }).code == 64);
}

DOCTEST_TEST_CASE("scores of different tokens are refused by line") {
  const Scores a(3, 1), longer(4, 1), other(3, 1, 5);
  const auto short_one = thrown([&] { task::read_score_pairs(a.path, longer.path, 8); });
  DOCTEST_CHECK(short_one.code == 65);
  DOCTEST_CHECK(short_one.names(a.path + " ends after line 13"));
  const auto differs = thrown([&] { task::read_score_pairs(a.path, other.path, 8); });
  DOCTEST_CHECK(differs.code == 65);
  DOCTEST_CHECK(differs.names(a.path + ":2: token 0 at 0"));
}
