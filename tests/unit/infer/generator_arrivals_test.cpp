// Prompts that arrive while others are continued, compared with each prompt alone.
#include <doctest/doctest.h>

#include "infer/serve/open_job.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"

namespace {

// A prompt and the step before which it arrives, at the earliest.
struct Coming {
  std::uint64_t step;
  infer::Arrival arrival;
};

Coming coming(std::uint64_t step, const std::string& text, std::int64_t max_tokens) {
  Coming made{step, {}};
  made.arrival.prompt.text = text;
  made.arrival.prompt.max_tokens = max_tokens;
  made.arrival.prompt.seed = text.size() + static_cast<std::uint64_t>(max_tokens);
  return made;
}

model::Loaded byte_model(const std::string& arch, const std::string& positions) {
  model::Loaded loaded;
  loaded.folder = "tiny";
  loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, positions, 256));
  loaded.tokenizer = text::load_tokenizer("bytes")->json();
  return loaded;
}

// Continues prompts as they come and records what happens.
struct Arrived {
  std::vector<infer::Sample> finished = {};  // in the order of their ends
  std::map<std::uint64_t, std::string> pieces = {};
  std::set<std::uint64_t> left = {};  // prompts that are not wanted any more
  std::uint64_t steps = 0, most_rows = 0;

  // As run(), but step by step: what the generator keeps stays.
  void go_on(infer::Generator& generator, std::vector<Coming> script) {
    run(generator, std::move(script), {}, /*begins=*/false);
  }
  void run(infer::Generator& generator, std::vector<Coming> script,
      const std::function<void()>& at_step = {}, bool begins = true) {
    std::uint64_t tokens = generator.tokens();
    std::int64_t open = 0;  // texts that came and have not ended
    infer::Arrivals arrivals;
    arrivals.next = [&](std::int64_t rows) {
      std::vector<infer::Arrival> now;
      while (!script.empty() && rows > 0 && (script[0].step <= steps || open == 0)) {
        rows -= script[0].arrival.samples, open += script[0].arrival.samples;
        now.push_back(script[0].arrival);
        script.erase(script.begin());
      }
      return now;
    };
    arrivals.wanted = [&](std::uint64_t prompt) { return !left.contains(prompt); };
    infer::GeneratorCallbacks watch;
    watch.piece = [&](auto prompt, auto sample, auto piece) {
      if (sample == 0) pieces[prompt] += piece;
    };
    watch.finished = [&](const infer::Sample& sample) { finished.push_back(sample), --open; };
    watch.progress = [&](std::uint64_t all) {
      ++steps;
      most_rows = std::max(most_rows, all - tokens);
      tokens = all;
      if (at_step) at_step();
    };
    if (begins) return generator.run(arrivals, watch);
    while (generator.step(arrivals, watch, /*shared=*/false)) {}
  }
};

infer::GeneratorOptions few_rows(std::int64_t window) {
  infer::GeneratorOptions options;
  options.batch = 3, options.window = window;
  return options;
}

const std::string kLongPrompt =
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season "
    "of Light, it was the season of Darkness, it was the spring of hope, it was the winter of despair";

// Different lengths, at different steps; the third and fourth come together and begin alike.
std::vector<Coming> script_of_arrivals() {
  return {coming(0, "The cat sat on", 30), coming(0, "a", 5),
      coming(3, "The cat sat by the door", 12), coming(3, "The cat sat by the wall and", 7),
      coming(4, kLongPrompt, 9), coming(9, "zz", 20), coming(40, "12 34 56", 3)};
}

}  // namespace

DOCTEST_TEST_CASE("a text that arrives among others is the one that it is alone") {
  struct Case {
    std::string arch, positions, memory;
    std::int64_t window;
  };
  const std::string
      own = R"({"memory": "local,long", "cache": 7, "memory-weights": "constant"})",
      counted =
          R"({"unigram": true, "online-ngrams": true, "cache": 9, "memory-weights": "online"})";
  for (const auto& [arch, positions, memory, window] :
      std::vector<Case>{{"transformer", "learned", "", 16}, {"transformer", "rope", "", 500},
          {"transformer", "rope", "", 16}, {"transformer", "rope", own, 64},
          {"transformer", "rope", counted, 500}, {"lstm", "learned", "", 16},
          {"gla", "learned", "", 16}, {"mosaic2", "learned", "", 500},
          {"transformer-xl", "learned", own, 16}}) {
    DOCTEST_CAPTURE(arch);
    DOCTEST_CAPTURE(memory);
    const auto loaded = byte_model(arch, positions);
    const auto options = few_rows(window);
    auto memories = tiny::memory_of("none");
    if (!memory.empty()) memories = infer::request_memory(memories, memory);
    infer::Generator generator(loaded, options, memories, torch::kCPU);
    Arrived arrived;
    arrived.run(generator, script_of_arrivals());
    const auto script = script_of_arrivals();
    DOCTEST_REQUIRE(arrived.finished.size() == script.size());
    DOCTEST_CHECK(arrived.most_rows == 3);
    for (const auto& sample : arrived.finished) {
      infer::Sample alone;
      infer::GeneratorCallbacks watch;
      watch.finished = [&](const infer::Sample& one) { alone = one; };
      infer::Generator(loaded, options, memories, torch::kCPU)
          .run({script[sample.prompt].arrival.prompt}, watch);
      DOCTEST_CAPTURE(sample.prompt);
      DOCTEST_CHECK(sample.tokens == alone.tokens);
      DOCTEST_CHECK(sample.text == alone.text);
      DOCTEST_CHECK(arrived.pieces[sample.prompt] == sample.text);
      const auto off = std::abs(sample.log_prob - alone.log_prob);
      DOCTEST_CHECK(off <= (memory.empty() ? 0 : 1e-3));
    }
  }
}

DOCTEST_TEST_CASE("a short text behind a long one ends first; the row of an ended text is taken") {
  infer::Generator generator(
      byte_model("transformer", "rope"), few_rows(500), tiny::memory_of("none"), torch::kCPU);
  Arrived arrived;
  arrived.run(generator, {coming(0, "a", 60), coming(0, "b", 4), coming(0, "c", 60),
                             coming(2, "d", 5), coming(2, kLongPrompt, 2)});
  DOCTEST_REQUIRE(arrived.finished.size() == 5);
  DOCTEST_CHECK(arrived.finished[0].prompt == 1);
  DOCTEST_CHECK(arrived.finished[1].prompt == 3);
  DOCTEST_CHECK(arrived.finished[2].prompt == 4);
  DOCTEST_CHECK(arrived.steps < 65);  // not one batch after the other
}

DOCTEST_TEST_CASE("a text that is not wanted any more leaves its row at once, wherever it is") {
  infer::Generator generator(
      byte_model("transformer", "rope"), few_rows(500), tiny::memory_of("none"), torch::kCPU);
  Arrived arrived;
  // Three rows run, of which two leave; one prompt leaves while it is read, and one while it waits.
  arrived.run(generator,
      {coming(0, "a", 90), coming(0, "b", 90), coming(0, "c", 30), coming(2, kLongPrompt, 9),
          coming(2, "d", 3), coming(2, "e", 3)},
      [&] {
        if (arrived.steps == 4) arrived.left = {0, 1};
        if (arrived.steps == 5) arrived.left = {0, 1, 3};
      });
  std::vector<std::uint64_t> order;
  for (const auto& sample : arrived.finished) order.push_back(sample.prompt);
  DOCTEST_CHECK(order == std::vector<std::uint64_t>{4, 5, 2});
  DOCTEST_CHECK(arrived.steps == 30);
  arrived.left = {}, arrived.finished.clear();
  arrived.run(generator, {coming(0, "f", 3)});  // the next run begins anew
  DOCTEST_CHECK(arrived.finished.size() == 1);
}

DOCTEST_TEST_CASE(
    "arrivals with several texts and options of their own, more than there are rows") {
  const auto loaded = byte_model("transformer", "rope");
  infer::Generator generator(loaded, few_rows(500), tiny::memory_of("none"), torch::kCPU);
  auto script = script_of_arrivals();
  script[1].arrival.samples = 5, script[1].arrival.draw.top_k = 3;
  script[2].arrival.samples = 2, script[2].arrival.draw.top_p = 0.5;
  Arrived arrived;
  arrived.run(generator, script);
  DOCTEST_CHECK(arrived.finished.size() == 12);
  for (const std::size_t which : {1, 2}) {
    auto options = few_rows(500);
    options.samples = script[which].arrival.samples;
    options.draw.top_k = script[which].arrival.draw.top_k;
    options.draw.top_p = script[which].arrival.draw.top_p;
    infer::GeneratorCallbacks watch;
    watch.finished = [&](const infer::Sample& one) {
      const auto same = std::ranges::find_if(arrived.finished, [&](const auto& sample) {
        return sample.prompt == which && sample.sample == one.sample;
      });
      DOCTEST_REQUIRE(same != arrived.finished.end());
      DOCTEST_CHECK(same->tokens == one.tokens);
    };
    infer::Generator(loaded, options, tiny::memory_of("none"), torch::kCPU)
        .run({script[which].arrival.prompt}, watch);
  }
}

DOCTEST_TEST_CASE("a prompt that begins as a computed one reads only the rest, to the same text") {
  const std::string
      own = R"({"memory": "local,long", "cache": 7, "memory-weights": "constant"})",
      counted =
          R"({"unigram": true, "online-ngrams": true, "cache": 9, "memory-weights": "online"})";
  const std::string first = kLongPrompt.substr(0, 60), second = kLongPrompt.substr(0, 130),
                    other = "Once upon a time there was a cow", third = kLongPrompt.substr(0, 131),
                    edited = kLongPrompt.substr(0, 100) + "nothing";
  for (const auto& memory : {std::string(), own, counted}) {
    DOCTEST_CAPTURE(memory);
    const auto loaded = byte_model("transformer", "rope");
    auto options = few_rows(200);
    options.kept = 2;
    auto memories = tiny::memory_of("none");
    if (!memory.empty()) memories = infer::request_memory(memories, memory);
    infer::Generator generator(loaded, options, memories, torch::kCPU);
    Arrived arrived;
    const auto again = [&](const std::string& prompt) {
      arrived.finished.clear();
      const auto before = generator.reused();
      arrived.go_on(generator, {coming(0, prompt, 8)});
      infer::GeneratorCallbacks watch;
      infer::Sample alone;
      watch.finished = [&](const infer::Sample& one) { alone = one; };
      auto plain = coming(0, prompt, 8).arrival.prompt;
      infer::Generator(loaded, few_rows(200), memories, torch::kCPU).run({plain}, watch);
      DOCTEST_REQUIRE(arrived.finished.size() == 1);
      DOCTEST_CHECK(arrived.finished[0].tokens == alone.tokens);
      DOCTEST_CHECK(std::abs(arrived.finished[0].log_prob - alone.log_prob) < 1e-3);
      const auto reused = static_cast<std::size_t>(generator.reused() - before);
      DOCTEST_CHECK(arrived.finished[0].reused == static_cast<std::int64_t>(reused));
      return reused;
    };
    DOCTEST_CHECK(again(first) == 0);
    DOCTEST_CHECK(again(second) == first.size());
    DOCTEST_CHECK(again(second) == second.size());  // the same prompt again
    DOCTEST_CHECK(again(other) == 0);
    DOCTEST_CHECK(again(first) == first.size() - 1);  // of the longer one, which has replaced it
    DOCTEST_CHECK(again(third) == second.size());
    DOCTEST_CHECK(again(other) == 0);  // it was not used for the longest time
    DOCTEST_CHECK(again(edited) == 100);
    DOCTEST_CHECK(again(second) == second.size() - 1);
    DOCTEST_CHECK(again("x" + third) == 0);
  }
}

DOCTEST_TEST_CASE("a text that fills the window makes rows forget, but no computed prompt wrong") {
  const auto loaded = byte_model("transformer", "rope");
  auto options = few_rows(40);
  options.kept = 4;
  infer::Generator generator(loaded, options, tiny::memory_of("none"), torch::kCPU);
  const auto prompt = kLongPrompt.substr(0, 30);
  Arrived arrived;
  arrived.go_on(generator, {coming(0, prompt, 60)});
  const auto whole = arrived.finished.at(0).tokens;
  for (int i = 0; i < 3; ++i) {
    arrived.finished.clear();
    arrived.go_on(generator, {coming(0, prompt, 60)});
    DOCTEST_CHECK(arrived.finished.at(0).tokens == whole);
  }
}
