// Two files of scores in parallel.

#include "task/comparison.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include "task/token_scores.h"
#include "unit/thrown.h"

namespace {

// Scores of `documents` documents of four tokens each, in a temporary file.
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
  const auto pairs = task::read_score_pairs({a.path}, {b.path}, task::block_choice_of("7"));
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
  const auto found = task::compare(pairs, choice, 0.95);
  const auto figures = task::figures(found, pairs, choice);
  DOCTEST_CHECK(figures["block"] == "document");
  DOCTEST_CHECK(figures["method"] == "documents");
  DOCTEST_CHECK(figures["degrees_of_freedom"].get<double>() == doctest::Approx(59));
  DOCTEST_CHECK(figures["blocks"] == 60);
  DOCTEST_CHECK(figures["difference"].get<double>() == doctest::Approx(1));
}

DOCTEST_TEST_CASE("several seeds: the mean over blocks, and each seed's sums") {
  const Scores a(6, 1), b(6, 2), c(6, 4), other(6, 1, 5);
  const auto pairs =
      task::read_score_pairs({a.path, b.path}, {b.path, c.path}, task::block_choice_of("auto"));
  DOCTEST_CHECK(pairs.tokens == 24);
  DOCTEST_REQUIRE(pairs.by_seed.size() == 2);
  DOCTEST_CHECK(pairs.by_seed[1].a == doctest::Approx(60));
  DOCTEST_CHECK(pairs.by_seed[1].b == doctest::Approx(108));
  DOCTEST_CHECK(pairs.by_seed[1].tokens == 24);
  DOCTEST_CHECK(pairs.by_document[5].a == doctest::Approx(8));
  DOCTEST_CHECK(pairs.by_document[5].b == doctest::Approx(14));
  const auto alone = task::read_score_pairs({}, {b.path, c.path}, {});
  DOCTEST_CHECK(alone.by_seed[0].a == 0);
  DOCTEST_CHECK(alone.by_seed[0].b == doctest::Approx(60));
  const auto later = thrown([&] {
    task::read_score_pairs({a.path, a.path}, {b.path, other.path}, {});
  });
  DOCTEST_CHECK(later.code == 65);
  DOCTEST_CHECK(later.names(a.path + ":2: has token 0 at 0"));
}

DOCTEST_TEST_CASE("a block is as asked, or a document where there are enough") {
  const Scores few(5, 1), many(6, 1);
  const auto choice = task::block_choice_of("auto");
  auto scarce = task::read_score_pairs({few.path}, {few.path}, choice);
  auto plenty = task::read_score_pairs({many.path}, {many.path}, choice);
  DOCTEST_CHECK(!task::block_choice_of("auto").documents(scarce));
  DOCTEST_CHECK(task::block_choice_of("auto").documents(plenty));
  DOCTEST_CHECK(task::block_choice_of("document").documents(scarce));
  DOCTEST_CHECK(!task::block_choice_of("1K").documents(plenty));
  DOCTEST_CHECK(task::block_choice_of("1K").tokens == 1000);
  DOCTEST_CHECK(thrown([] { task::block_choice_of("0"); }).code == 64);
  plenty.by_document.back().tokens = 1000;  // most of the text
  DOCTEST_CHECK(!choice.documents(plenty));
}

DOCTEST_TEST_CASE("blocks of tokens fit the length of the text") {
  DOCTEST_CHECK(task::block_for(512) == 8);
  DOCTEST_CHECK(task::block_for(950) == 14);
  DOCTEST_CHECK(task::block_for(10'240) == 160);
  DOCTEST_CHECK(task::block_for(1'000'000) == 512);
  const Scores one(160, 1);
  const auto pairs = task::read_score_pairs({one.path}, {one.path}, task::block_choice_of("auto"));
  DOCTEST_CHECK(pairs.block == 10);
  DOCTEST_CHECK(pairs.by_tokens.size() == 64);
  DOCTEST_CHECK(pairs.by_tokens[63].tokens == 10);
  DOCTEST_CHECK(pairs.by_tokens[63].a == doctest::Approx(15));
}

DOCTEST_TEST_CASE("scores of different tokens are refused by line") {
  const Scores a(3, 1), longer(4, 1), other(3, 1, 5);
  const auto short_one = thrown([&] { task::read_score_pairs({a.path}, {longer.path}, {}); });
  DOCTEST_CHECK(short_one.code == 65);
  DOCTEST_CHECK(short_one.names(a.path + " ends after line 13"));
  const auto differs = thrown([&] { task::read_score_pairs({a.path}, {other.path}, {}); });
  DOCTEST_CHECK(differs.code == 65);
  DOCTEST_CHECK(differs.names(a.path + ":2: has token 0 at 0"));
}
