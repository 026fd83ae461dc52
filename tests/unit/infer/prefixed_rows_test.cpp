// Texts generated after passages get the log-probabilities of scoring.

#include "infer/generate/prefixed_rows.h"
#include "infer/loops/make_engine.h"

#include "infer/generate/decode_session.h"
#include "nn/base/torch.h"
#include "retrieved_text.h"

#include <doctest/doctest.h>

namespace {

using torch::Tensor;

infer::RetrievePlan retrieve_plan(const retrieved::Index& index, std::int64_t mix) {
  infer::RetrievePlan plan;
  plan.index = index.opened;
  plan.every = 5, plan.query = 12, plan.tokens = 16, plan.mix = mix, plan.temperature = 2;
  return plan;
}

}  // namespace

DOCTEST_TEST_CASE("a text that grows token by token is given what a scored one is") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  auto text = retrieved::words_of({30}, 8);
  text.documents[0].resize(86);  // whole windows: a shorter last window would see more
  const auto tokens = text.tokens();
  const tiny::Shard shard(text);
  for (const auto& [arch, positions] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "rope"}, {"transformer", "learned"}, {"lstm", "learned"}})
    for (const std::int64_t mix : {1, 3}) {
      auto model = tiny::model_of(arch, positions, 256);
      auto windows = tiny::windows_of(40, 5);
      retrieve_plan(index, mix).put_into(windows);
      const auto memory = infer::plan_memory(tiny::memory_of("none"), windows, model);
      const auto scored = tiny::log_probs(model, shard.data(), windows, memory);
      const auto engine = infer::make_engine(model, torch::kCPU, infer::parse_precision("float32"));
      infer::Session session(*engine, model, 40, memory, torch::kCPU, infer::Precision::float32,
          retrieve_plan(index, mix));
      // Another row has another text, and is dropped and selected again meanwhile.
      session.start({{tokens[0]}, {'w', '7'}});
      double most = 0;
      for (std::size_t t = 1; t < tokens.size(); ++t) {
        const Tensor words = session.log_probs();
        DOCTEST_CHECK(words[1].exp().sum().item<double>() == doctest::Approx(1).epsilon(1e-4));
        const double found = words[0][static_cast<std::int64_t>(tokens[t])].item<double>();
        most = std::max(
            most, std::abs(found - scored[static_cast<std::int64_t>(t) - 1].item<double>()));
        if (t % 7 == 3) session.select({0, 0});
        session.advance({tokens[t], tokens[t - 1]});
      }
      DOCTEST_CHECK(most < 2e-4);
    }
}

DOCTEST_TEST_CASE("passages are looked for again after so many tokens, by what was written since") {
  const retrieved::Index index(retrieved::words_of({90, 40, 60}, 5), 24);
  auto model = tiny::model_of("transformer", "rope", 256);
  const auto engine = infer::make_engine(model, torch::kCPU, infer::parse_precision("float32"));
  infer::PrefixedRows rows(*engine, retrieve_plan(index, 2), 40);
  std::vector<std::uint32_t> text = {'w', '1', ' '};
  rows.start({{text.begin(), text.end()}});
  for (int t = 0; t < 12; ++t) {
    DOCTEST_CHECK(rows.anew() == (t % 5 == 0));
    if (rows.anew()) {
      const auto plain = retrieved::plain_prefixes(retrieve_plan(index, 2), text);
      DOCTEST_REQUIRE(rows.prefixes(0).size() == plain.size());
      for (std::size_t k = 0; k < plain.size(); ++k)
        DOCTEST_CHECK(rows.prefixes(0)[k].passage == plain[k].passage);
    }
    text.push_back(t % 4 == 3 ? ' ' : static_cast<std::uint32_t>("w23"[t % 4]));
    rows.advance({text.back()});
  }
}
