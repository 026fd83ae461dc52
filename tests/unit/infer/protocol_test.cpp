// The windows of other programs, compared with loops in the manner of each program.

#include "infer/windows/window_options.h"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <vector>

#include "core/error.h"
#include "infer/score/tune.h"
#include "infer/windows/windows.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"

namespace {

// A window over the tokens y of a stream: y[begin, end) is fed, y[scored, last] are targets, and
// `counted` of these count.
using Plain = std::array<std::int64_t, 4>;  // begin, scored, last, counted
using Plains = std::vector<Plain>;

Plains hf(std::int64_t n, std::int64_t window, std::int64_t stride) {
  Plains windows;
  for (std::int64_t begin = 0, before = 0; begin < n; begin += stride) {
    const auto end = std::min(begin + window, n);
    const auto first = std::max(before, begin + 1);
    if (first < end) windows.push_back({begin, first, end - 1, end - before - 1});
    before = end;
    if (end == n) break;
  }
  return windows;
}

Plains lm_eval(std::int64_t n, std::int64_t window, std::int64_t stride) {
  Plains windows;
  for (std::int64_t done = 1; done < n;) {
    const auto end = std::min(n, done + (done == 1 ? window : stride));
    windows.push_back({std::max<std::int64_t>(0, end - 1 - window), done, end - 1, end - done});
    done = end;
  }
  return windows;
}

Plains llama_cpp(std::int64_t n, std::int64_t window, std::int64_t) {
  Plains windows;
  for (std::int64_t begin = 0; begin + window <= n; begin += window)
    windows.push_back({begin, begin + window / 2 + 1, begin + window - 1, window - 1 - window / 2});
  return windows;
}

Plains fairseq(std::int64_t n, std::int64_t window, std::int64_t stride) {
  Plains windows;
  for (std::int64_t done = 1; done < n; done += stride)
    windows.push_back({std::max<std::int64_t>(0, done - 1 - (window - stride)), done,
        std::min(n, done + stride) - 1, std::min(stride, n - done)});
  return windows;
}

infer::WindowPlan plan_of(const std::string& protocol, std::int64_t window, std::int64_t stride) {
  infer::WindowPlan plan = tiny::windows_of(window, stride);
  plan.layout = infer::find_protocol(protocol)->layout;
  return plan;
}

}  // namespace

DOCTEST_TEST_CASE("windows of each protocol lie where its program's loop puts them") {
  const std::map<std::string, Plains (*)(std::int64_t, std::int64_t, std::int64_t)> plain = {
      {"hf", hf}, {"lm-eval", lm_eval}, {"llama.cpp", llama_cpp}, {"fairseq", fairseq}};
  const auto names = infer::protocol_names();
  DOCTEST_CHECK(names == std::vector<std::string>{"none", "hf", "lm-eval", "llama.cpp", "fairseq"});
  for (const auto& [name, loop] : plain) {
    for (const std::int64_t window : {3, 4, 7, 16}) {
      for (std::int64_t stride = 1; stride <= window; ++stride) {
        if (name == "llama.cpp" && stride < window) continue;
        for (std::int64_t n = 2; n < 60; ++n) {
          for (const bool begun : {false, true}) {
            DOCTEST_CAPTURE(name);
            DOCTEST_CAPTURE(window);
            DOCTEST_CAPTURE(stride);
            DOCTEST_CAPTURE(n);
            auto plan = plan_of(name, window, stride);
            if (begun) plan.beginning = 0;
            const auto elements = static_cast<std::uint64_t>(begun ? n - 1 : n);
            shard::Documents documents;
            documents.end = {elements}, documents.bytes = {1}, documents.words = {1};
            infer::Windows windows(plan, documents, elements);
            Plains found;
            double counted = 0;
            while (const auto span = windows.next()) {
              const auto first = static_cast<std::int64_t>(span->target) - (begun ? 0 : 1);
              found.push_back(
                  {first, first + span->first_scored + 1, first + span->length, span->counted});
              counted += static_cast<double>(span->counted);
              DOCTEST_CHECK(span->begins == (first == 0));
              DOCTEST_CHECK(span->length <= window);
            }
            DOCTEST_REQUIRE((found == loop(n, window, stride)));
            if (elements == 0) continue;
            const auto shares = infer::scored_shares(plan, documents, elements);
            DOCTEST_CHECK(shares[0] == doctest::Approx(counted / static_cast<double>(elements)));
          }
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("memories see under a protocol what they see in the same windows without one") {
  // Windows of other lengths multiply in another order: the scores are about 40, so this allows
  // some roundings.
  const double rounding = 3e-5;
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(tiny::text_of({75}));
  auto memory = tiny::memory_of("local,long", 20);
  tiny::cache(memory).positions = 9;
  const auto scores = [&](const infer::WindowPlan& windows) {
    return tiny::log_probs(model, shard.data(), windows, memory);
  };
  const auto equal = [&](const infer::WindowPlan& a, const infer::WindowPlan& b) {
    const auto x = scores(a), y = scores(b);
    DOCTEST_REQUIRE(x.numel() == y.numel());
    DOCTEST_CHECK(tiny::largest_difference(x, y) < rounding);
  };
  equal(plan_of("hf", 17, 5), tiny::windows_of(16, 5));
  equal(plan_of("fairseq", 16, 16), tiny::windows_of(16, 16));
  // 74 targets: windows of 10 and 16 more at a time; the last window is a full one.
  equal(plan_of("lm-eval", 10, 8), tiny::windows_of(10, 8));
  // Tokens that llama.cpp does not score are remembered too: windows of 18 tokens have 17 inputs.
  const auto whole = scores(tiny::windows_of(17, 17));
  const auto halves = scores(plan_of("llama.cpp", 18, 17));
  DOCTEST_REQUIRE(halves.numel() == 4 * 8);
  for (std::int64_t i = 0; i < 4; ++i)
    DOCTEST_CHECK(tiny::largest_difference(halves.slice(0, i * 8, (i + 1) * 8),
                      whole.slice(0, i * 17 + 9, (i + 1) * 17)) < rounding);
}

DOCTEST_TEST_CASE("what is tuned under a protocol has the loss that scoring gives it") {
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(tiny::text_of({75, 40}));
  const auto windows = plan_of("hf", 9, 2);  // windows that score two tokens and count for one
  auto memory = tiny::memory_of("local");
  tiny::context(memory).combine = "interpolate", tiny::cache(memory).positions = 30;
  for (const bool gated : {false, true}) {
    if (gated) *tiny::cache(memory).lambda.target() = infer::MemoryWeight::kGate;
    const auto plan = infer::plan_memory(memory, windows, model);
    for (const bool listed : {false, true}) {
      infer::TuneOptions grid;
      grid.points["temperature"] = {1}, grid.points["theta"] = {0.1, 0.5};
      if (listed) grid.lambdas = {0, 0.2, 0.5};
      const auto tuned = infer::tune(model, shard.data(), windows, plan, grid, torch::kCPU);
      const auto scored = infer::score(model, shard.data(), windows, tuned.memory, torch::kCPU);
      DOCTEST_CHECK(tuned.totals.tokens == scored.tokens);
      DOCTEST_CHECK(std::abs(tuned.totals.loss() - scored.loss()) < (gated ? 1e-5 : 1e-7));
    }
  }
}

DOCTEST_TEST_CASE("a protocol chooses what was left open, and options that are given win") {
  const auto tokenizer = text::load_tokenizer("tests/golden/tokenizers/pipelines/llama3.json");
  const std::int64_t begin = *tokenizer->id_of("<|begin_of_text|>"),
                     mark = *tokenizer->end_of_document();
  nn::Model model =
      tiny::model_of("transformer", "learned", static_cast<std::int64_t>(tokenizer->size()));
  auto text = tiny::text_of({30, 8}, 300);
  text.vocabulary = tokenizer->size();
  for (auto& document : text.documents) document.push_back(mark);
  const tiny::Shard shard(text, tokenizer->json());
  model::TrainingFacts facts;
  facts.segment = 32;
  const auto plan = [&](const char* protocol, infer::WindowOptions options = {}) {
    options.protocol = protocol;
    options.settle();
    return infer::plan_windows(options, model, facts, shard.data());
  };
  const auto usual = plan("none");
  DOCTEST_CHECK((usual.window == 32 && usual.protocol.empty()));
  for (const char* name : {"hf", "lm-eval", "llama.cpp", "fairseq"}) {
    const auto found = plan(name);
    DOCTEST_CHECK((found.window == 96 && found.stride == 96));
    DOCTEST_CHECK(found.protocol == name);
    DOCTEST_CHECK(found.by_document == (std::string(name) == "lm-eval"));
    DOCTEST_CHECK(found.beginning == (std::string(name) == "fairseq" ? mark : begin));
    DOCTEST_CHECK(found.window_token == (std::string(name) == "llama.cpp" ? begin : -1));
    // The text's last token closes it, and only fairseq counts it as a part of the text.
    const auto shares = infer::scored_shares(found, shard.data().documents(), shard.data().size());
    DOCTEST_CHECK((shares[1] == 1) == (std::string(name) != "llama.cpp"));
  }
  // A transformers folder: config.json gives the number of positions of a rotary model.
  nn::Model rotary = tiny::model_of("transformer", "rope");
  const auto of_rotary = [&](const char* protocol, std::int64_t segment, std::int64_t window = 0) {
    infer::WindowOptions given;
    given.protocol = protocol, given.window = window;
    model::TrainingFacts of;
    of.segment = segment, of.positions = 1024;
    return infer::plan_windows(given, rotary, of);
  };
  DOCTEST_CHECK(of_rotary("none", 0).window == 1024);
  DOCTEST_CHECK(of_rotary("none", 128).window == 128);
  for (const char* name : {"hf", "lm-eval", "fairseq"})
    DOCTEST_CHECK(of_rotary(name, 128).window == 1024);
  DOCTEST_CHECK(of_rotary("hf", 0).stride == 512);
  DOCTEST_CHECK(of_rotary("llama.cpp", 0).window == 512);
  DOCTEST_CHECK(infer::long_window_note(of_rotary("none", 0, 1024), "m").empty());
  DOCTEST_CHECK(infer::long_window_note(of_rotary("none", 0, 1025), "m")
                    .starts_with("--window 1025: m has only 1024 positions;"));
  infer::WindowOptions options;
  options.window = 12, options.stride = 5, options.begin = "<|endoftext|>";
  DOCTEST_CHECK(plan("lm-eval", options).window == 12);
  DOCTEST_CHECK(plan("hf", options).stride == 5);
  DOCTEST_CHECK(plan("hf", options).beginning == *tokenizer->id_of("<|endoftext|>"));
  options.restart = "none", options.bos_at = "text";
  DOCTEST_CHECK(plan("lm-eval", options).by_document == false);
  DOCTEST_CHECK(plan("llama.cpp", options).window_token == -1);
  options.window = 2, options.stride = 2;
  DOCTEST_CHECK_THROWS_WITH_AS(plan("llama.cpp", options),
      "--window 2: with --protocol llama.cpp, no token of it is scored; give a larger window",
      core::Error);
  options.window = 0, options.stride = 0, options.carry = "on";
  nn::Model recurrent =
      tiny::model_of("lstm", "learned", static_cast<std::int64_t>(tokenizer->size()));
  options.protocol = "hf";
  DOCTEST_CHECK_THROWS_WITH_AS(infer::plan_windows(options, recurrent, {}, shard.data()),
      "--protocol hf: cannot be combined with --carry on, since it encodes each window separately",
      core::Error);
}
