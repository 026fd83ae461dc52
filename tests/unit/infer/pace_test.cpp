// Work in pieces of bounded time: their sizes, and scores that do not depend on them.
#include <doctest/doctest.h>

#include "infer/answers/answerer.h"
#include "infer/serve/open_job.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"

namespace {

using std::chrono::milliseconds;

const std::string kText =
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity";

std::vector<std::int64_t> ids_of(const std::string& text) { return {text.begin(), text.end()}; }

model::Loaded byte_model_of(const std::string& arch, const std::string& positions) {
  model::Loaded loaded;
  loaded.folder = "tiny";
  loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, positions, 256));
  loaded.tokenizer = text::load_tokenizer("bytes")->json();
  return loaded;
}

infer::Pace::Sizes small_pieces() {
  infer::Pace::Sizes sizes;
  sizes.encode.took(32, milliseconds(800), true);  // 4 tokens
  sizes.score.took(32, milliseconds(800), true);
  return sizes;
}

std::int64_t after(infer::PieceSize& size, std::int64_t tokens, milliseconds time, bool shared) {
  size.took(tokens, time, shared);
  return size.tokens();
}

}  // namespace

DOCTEST_TEST_CASE("a piece has the tokens of the wanted time, at most twice the last ones") {
  infer::PieceSize size;
  DOCTEST_CHECK(size.tokens() == 32);
  DOCTEST_CHECK(after(size, 32, milliseconds(1), true) == 64);
  DOCTEST_CHECK(after(size, 64, milliseconds(80), true) == 80);
  DOCTEST_CHECK(after(size, 80, milliseconds(400), true) == 20);
  DOCTEST_CHECK(after(size, 20, milliseconds(400), false) == 12);
  DOCTEST_CHECK(after(size, 12, milliseconds(100000), true) == 1);
  DOCTEST_CHECK(after(size, 1, milliseconds(0), true) == 2);
  size = {};
  for (int i = 0; i < 20; ++i) after(size, size.tokens(), milliseconds(0), true);
  DOCTEST_CHECK(size.tokens() == 4096);
  DOCTEST_CHECK(after(size, 3, milliseconds(1), true) == 4096);  // says nothing about more
}

DOCTEST_TEST_CASE("texts scored in pieces have the scores of whole windows; others work between") {
  struct Case {
    std::string arch, positions, memory;
  };
  const std::vector<std::vector<std::int64_t>> texts = {
      ids_of(kText), ids_of(kText.substr(7, 23)), {65, 66}};
  for (const auto& [arch, positions, memory] :
      std::vector<Case>{{"transformer", "learned", "{}"}, {"transformer", "rope", "{}"},
          {"transformer", "rope", R"({"memory": "local,long", "cache": 7})"},
          {"transformer", "rope",
              R"({"unigram": true, "online-ngrams": true, "cache": 9, "memory-weights": "online"})"},
          {"lstm", "learned", "{}"}, {"gla", "learned", R"({"cache": 9})"},
          {"transformer-xl", "learned", "{}"}}) {
    DOCTEST_CAPTURE(arch);
    DOCTEST_CAPTURE(memory);
    infer::AnswererOptions options;
    options.windows.window = 48;
    options.memory = infer::request_memory(tiny::memory_of("none"), memory);
    options.likely = 3;
    infer::Answerer answerer(options, byte_model_of(arch, positions));
    const auto whole = answerer.score_tokens(texts, answerer.memory());
    int pieces = 0;
    auto sizes = small_pieces();
    infer::Pace::Sizes inner;
    bool nested = false;
    const auto between = [&] {
      // Another text is scored between two pieces.
      if (++pieces == 3 && !std::exchange(nested, true)) {
        infer::Pace pace(inner, [] { return true; });
        const auto scores = answerer.score_tokens({texts[1]}, answerer.memory(), &pace);
        for (std::size_t i = 0; i < scores[0].log_prob.size(); ++i)
          DOCTEST_CHECK(std::abs(scores[0].log_prob[i] - whole[1].log_prob[i]) < 1e-4);
      }
      return true;
    };
    infer::Pace pace(sizes, between);
    const auto divided = answerer.score_tokens(texts, answerer.memory(), &pace);
    DOCTEST_CHECK(pieces > 5);
    DOCTEST_REQUIRE(nested);
    for (std::size_t t = 0; t < texts.size(); ++t) {
      DOCTEST_REQUIRE(divided[t].log_prob.size() == texts[t].size() - 1);
      for (std::size_t i = 0; i < divided[t].log_prob.size(); ++i) {
        DOCTEST_CHECK(std::abs(divided[t].log_prob[i] - whole[t].log_prob[i]) < 1e-4);
        DOCTEST_CHECK(divided[t].details[i].likely[0].first == whole[t].details[i].likely[0].first);
      }
    }
  }
}

DOCTEST_TEST_CASE("weights learned from a context in pieces are those of the whole context") {
  const auto loaded = byte_model_of("transformer", "rope");
  infer::AnswererOptions options;
  options.windows.window = 48;
  options.memory = infer::request_memory(tiny::memory_of("none"),
      R"({"unigram": true, "online-ngrams": true, "cache": 9, "memory-weights": "online"})");
  const infer::Answerer answerer(options, loaded);
  infer::ModuleEngine engine(*loaded.model, torch::kCPU);
  infer::PassageScorer scorer(*loaded.model, engine,
      infer::plan_windows(options.windows, *loaded.model), answerer.memory(), 256);
  const infer::Passage passage{ids_of(kText), {ids_of(", it was"), ids_of(" and the")}};
  const auto whole = scorer.score({&passage, 1});
  int pieces = 0;
  auto sizes = small_pieces();
  infer::Pace pace(sizes, [&] { return ++pieces > 0; });
  const auto divided = scorer.score({&passage, 1}, &pace);
  // A piece is at most twice the one before: at least ten to encode and score, six to learn.
  DOCTEST_CHECK(pieces >= 14);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < passage.continuations[i].size(); ++j)
      DOCTEST_CHECK(std::abs(divided[0][i].log_prob[j] - whole[0][i].log_prob[j]) < 1e-4);
}
