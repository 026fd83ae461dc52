// Generated texts, compared with re-encoding the whole text.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "infer/generate/generator.h"
#include "infer/generate/sample_all.h"
#include "infer/loops/transformer_engine.h"
#include "nn/base/torch.h"
#include "plain_beam.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using tiny::bytes_of;
using torch::Tensor;
using Tokens = std::vector<std::int64_t>;

model::Loaded loaded_of(const std::string& arch, const std::string& positions = "learned",
    std::int64_t vocabulary = 256) {
  model::Loaded loaded;
  loaded.folder = "tiny";
  loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, positions, vocabulary));
  loaded.tokenizer = text::load_tokenizer("bytes")->json();
  return loaded;
}

infer::GeneratorOptions options_of(std::int64_t max_tokens, double temperature = 1) {
  infer::GeneratorOptions options;
  options.max_tokens = max_tokens;
  options.draw.temperature = temperature;
  return options;
}

infer::MemoryOptions no_memory() { return tiny::memory_of("none"); }

using Key = std::pair<std::uint64_t, std::int64_t>;

std::map<Key, infer::Sample> samples_of(const model::Loaded& loaded,
    const infer::GeneratorOptions& options, const infer::MemoryOptions& memory,
    const std::vector<infer::Prompt>& prompts) {
  infer::Generator generator(loaded, options, memory, torch::kCPU);
  std::map<Key, infer::Sample> all;
  std::map<Key, std::string> pieces;
  infer::GeneratorCallbacks watch;
  watch.piece = [&](auto prompt, auto sample, auto piece) { pieces[{prompt, sample}] += piece; };
  watch.finished = [&](const infer::Sample& sample) {
    all[{sample.prompt, sample.sample}] = sample;
  };
  generator.run(prompts, watch);
  if (!options.searches())
    for (const auto& [key, sample] : all) DOCTEST_REQUIRE(pieces[key] == sample.text);
  return all;
}

std::map<Key, infer::Sample> samples(const model::Loaded& loaded,
    const infer::GeneratorOptions& options, const infer::MemoryOptions& memory,
    const std::vector<std::string>& texts) {
  return samples_of(loaded, options, memory, infer::PromptReader(texts).next(texts.size()));
}

// Returns log p of the next token after tokens, encoded as a whole.
Tensor next_word(nn::Model& model, const Tokens& tokens) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size());
  nn::Batch batch;
  batch.inputs = batch.targets = torch::tensor(tokens).unsqueeze(0);
  batch.weight = torch::ones({1, n});
  batch.place = {torch::zeros({1, n}, torch::kInt64), torch::zeros({1, n}, torch::kInt64),
      torch::arange(n).unsqueeze(0)};
  batch.fresh = torch::ones({1}, torch::kBool);
  const auto hidden = model.architecture->forward(batch, nullptr);
  return model.head->log_probs(hidden.output[0].slice(0, n - 1))[0];
}

void check_same(const std::map<Key, infer::Sample>& a, const std::map<Key, infer::Sample>& b) {
  DOCTEST_REQUIRE(a.size() == b.size());
  for (const auto& [key, sample] : a) {
    const auto found = b.find(key);
    DOCTEST_REQUIRE(found != b.end());
    DOCTEST_CHECK(sample.tokens == found->second.tokens);
    DOCTEST_CHECK(sample.text == found->second.text);
    DOCTEST_CHECK(std::abs(sample.log_prob - found->second.log_prob) < 1e-3);
  }
}

const std::vector<std::string> kPrompts = {
    "The cat sat on", "a", "12 34 56 78 90 12 34", "\xC3\xA9t\xC3\xA9", "zz"};
// Prompts whose beginning is read once; one of them is longer than the test's window.
const std::vector<std::string> kBegun = {
    "The cat sat on", "The cat sat by the door", "The cat sat"};

}  // namespace

DOCTEST_TEST_CASE("greedy takes the best word of the whole text encoded again, step by step") {
  for (const auto& [arch, positions] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "learned"}, {"transformer", "alibi"}, {"lstm", ""}}) {
    const auto loaded = loaded_of(arch, positions.empty() ? "learned" : positions);
    auto options = options_of(30, 0);
    options.window = 90;
    for (const auto& [key, sample] : samples(loaded, options, no_memory(), kPrompts)) {
      Tokens text = bytes_of(kPrompts[key.first]);
      double log_prob = 0;
      for (const auto token : sample.tokens) {
        const Tensor p = next_word(*loaded.model, text);
        DOCTEST_CHECK(token == p.argmax().item<std::int64_t>());
        log_prob += p[token].item<double>();
        text.push_back(token);
      }
      DOCTEST_CHECK(sample.tokens.size() == 30);
      DOCTEST_CHECK(sample.finish == infer::Finish::length);
      DOCTEST_CHECK(std::abs(sample.log_prob - log_prob) < 1e-3);
    }
  }
}

DOCTEST_TEST_CASE("with absolute positions a full window keeps its newer half, in the prompt too") {
  const auto loaded = loaded_of("transformer");
  auto options = options_of(50, 0);
  options.window = 12;
  for (const auto& [key, sample] : samples(loaded, options, no_memory(), kPrompts)) {
    Tokens text = bytes_of(kPrompts[key.first]), seen;
    const auto take = [&](std::int64_t token) {
      if (seen.size() == 12) seen.erase(seen.begin(), seen.begin() + 6);
      seen.push_back(token);
    };
    for (const auto token : text) take(token);
    for (const auto token : sample.tokens) {
      DOCTEST_REQUIRE(token == next_word(*loaded.model, seen).argmax().item<std::int64_t>());
      take(token);
    }
  }
}

DOCTEST_TEST_CASE("a text does not depend on the batch it was in") {
  for (const auto& [arch, positions] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "learned"}, {"transformer", "rope"}, {"lstm", "learned"}}) {
    const auto loaded = loaded_of(arch, positions);
    for (const char* names : {"none", "local,long"}) {
      auto memory = tiny::memory_of(names);
      tiny::cache(memory).positions = 7;
      auto options = options_of(14);
      options.window = 16, options.samples = 2, options.draw.top_p = 0.95;
      auto alone = options, some = options;
      alone.batch = 1, some.batch = 3;
      for (const auto& prompts : {kPrompts, kBegun}) {
        const auto all = samples(loaded, options, memory, prompts);
        DOCTEST_CHECK(all.size() == 2 * prompts.size());
        check_same(all, samples(loaded, alone, memory, prompts));
        check_same(all, samples(loaded, some, memory, prompts));
      }
    }
  }
}

DOCTEST_TEST_CASE(
    "the second of two drawn tokens follows the model's distribution behind the first") {
  const auto loaded = loaded_of("transformer", "rope");
  auto options = options_of(2, 0.8);
  options.draw.top_k = 4, options.draw.top_p = 0.9;
  options.samples = 4000, options.batch = 1000, options.seed = 3;
  std::map<std::pair<std::int64_t, std::int64_t>, double> counts, expected;
  for (const auto& [key, sample] : samples(loaded, options, no_memory(), {"The cat"})) {
    DOCTEST_REQUIRE(sample.tokens.size() == 2);
    ++counts[{sample.tokens[0], sample.tokens[1]}];
  }
  // Returns (token, probability): the four best tokens, of these the fewest with 0.9 of their sum,
  // with p^(1 / T).
  const auto drawn_from = [&](const Tokens& text) {
    const Tensor row = next_word(*loaded.model, text).to(torch::kFloat64);
    std::vector<std::pair<double, std::int64_t>> words;
    for (std::int64_t w = 0; w < row.size(0); ++w)
      words.emplace_back(std::exp(row[w].item<double>() / 0.8), w);
    std::sort(words.rbegin(), words.rend());
    words.resize(4);
    double sum = 0, kept = 0;
    for (const auto& [p, w] : words) sum += p;
    std::size_t n = 0;
    while (kept < 0.9 * sum) kept += words[n++].first;
    words.resize(n);
    for (auto& [p, w] : words) p /= kept;
    return words;
  };
  const Tokens prompt = bytes_of("The cat");
  for (const auto& [p, first] : drawn_from(prompt)) {
    Tokens text = prompt;
    text.push_back(first);
    for (const auto& [q, second] : drawn_from(text)) expected[{first, second}] = 4000 * p * q;
  }
  double square = 0, freedom = -1;
  for (const auto& [pair, n] : expected) {
    if (n < 5) continue;  // too few for the distribution of the sum
    square += (counts[pair] - n) * (counts[pair] - n) / n;
    ++freedom;
  }
  for (const auto& [pair, n] : counts) DOCTEST_CHECK(expected.contains(pair));
  DOCTEST_CHECK(freedom >= 2);
  DOCTEST_CHECK(square < freedom + 4 * std::sqrt(2 * freedom));
}

DOCTEST_TEST_CASE("what a prompt says of its own texts holds for them, and for no other's") {
  const auto loaded = loaded_of("transformer");
  auto common = options_of(20);
  common.samples = 2;
  auto prompts = infer::PromptReader(kPrompts).next(kPrompts.size());
  prompts[1].max_tokens = 3;
  prompts[2].temperature = 0;
  prompts[3].seed = 9;
  const auto theirs = samples(loaded, common, no_memory(), kPrompts);
  const auto stop = theirs.at({4, 0}).text.substr(2, 2);
  prompts[4].stop = {stop};
  const auto own = samples_of(loaded, common, no_memory(), prompts);
  auto greedy = common, seeded = common, stopped = common;
  greedy.draw.temperature = 0, seeded.seed = 9, stopped.stop = {stop};
  const auto cold = samples(loaded, greedy, no_memory(), kPrompts);
  const auto ninth =
      samples(loaded, seeded, no_memory(), {kPrompts[3]});  // its number is no matter
  const auto cut = samples(loaded, stopped, no_memory(), kPrompts);
  for (std::int64_t i = 0; i < 2; ++i) {
    DOCTEST_CHECK(own.at({0, i}).tokens == theirs.at({0, i}).tokens);
    DOCTEST_CHECK(own.at({1, i}).tokens.size() == 3);
    DOCTEST_CHECK(own.at({2, i}).tokens == cold.at({2, i}).tokens);
    DOCTEST_CHECK(own.at({3, i}).tokens == ninth.at({0, i}).tokens);
    DOCTEST_CHECK(own.at({4, i}).tokens == cut.at({4, i}).tokens);
  }
  DOCTEST_CHECK(own.at({4, 0}).finish == infer::Finish::stop);
  DOCTEST_CHECK(own.at({3, 0}).tokens != theirs.at({3, 0}).tokens);
  common.beam = 2;
  for (const auto number : {2, 3}) {
    const auto error = thrown([&] {
      samples_of(loaded, common, no_memory(), {prompts[static_cast<std::size_t>(number)]});
    });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(number == 2 ? "temperature" : "seed"));
  }
}

DOCTEST_TEST_CASE("a sample is the same however many there are; another seed gives another") {
  const auto loaded = loaded_of("transformer");
  auto two = options_of(20), five = two, other = two;
  two.samples = 2, five.samples = 5, other.seed = 2;
  const auto many = samples(loaded, five, no_memory(), {"x", "y"});
  for (const auto& [key, sample] : samples(loaded, two, no_memory(), {"x", "y"}))
    DOCTEST_CHECK(sample.tokens == many.at(key).tokens);
  DOCTEST_CHECK(
      samples(loaded, other, no_memory(), {"x"}).at({0, 0}).tokens != many.at({0, 0}).tokens);
}

DOCTEST_TEST_CASE("memories join as by hand, each row with its own") {
  const torch::NoGradGuard no_gradient;
  const auto loaded = loaded_of("transformer");
  nn::Model& model = *loaded.model;
  for (const char* combine : {"joint", "interpolate"}) {
    infer::MemoryOptions options = tiny::memory_of("local,long", 6);
    tiny::context(options).combine = combine, tiny::cache(options).positions = 4,
    options.joint_temperature = 0.7;
    const auto memory = infer::plan_memory(options, tiny::windows_of(8, 8), model);
    // The State holds all tokens, so encoding the whole text is the reference.
    infer::TransformerEngine engine(model, infer::Precision::float32);
    infer::Session session(engine, model, 64, memory, torch::kCPU);
    std::vector<Tokens> texts{bytes_of("abcabcabcab"), bytes_of("x"), bytes_of("hello he")};
    session.start(texts);
    for (int step = 0; step < 12; ++step) {
      const Tensor p = session.log_probs();
      DOCTEST_CHECK((p.exp().sum(1) - 1).abs().max().item<double>() < 1e-4);
      for (std::size_t row = 0; row < texts.size(); ++row) {
        const auto& text = texts[row];
        const auto n = static_cast<std::int64_t>(text.size());
        nn::Batch batch;
        batch.inputs = batch.targets = torch::tensor(text).unsqueeze(0);
        batch.weight = torch::ones({1, n});
        const Tensor zero = torch::zeros({1, n}, torch::kInt64);
        batch.place = {zero, zero, torch::arange(n).unsqueeze(0)};
        batch.fresh = torch::ones({1}, torch::kBool);
        const auto hidden = model.architecture->forward(batch, nullptr);
        Tensor z;
        const Tensor words = model.head->log_probs(hidden.output[0].slice(0, n - 1), &z)[0].exp();
        // Returns the mass of every token by a loop over the earlier tokens. Local reaches back by
        // the window, 64.
        const auto masses = [&](const Tensor& keys, std::int64_t reach, double scale) {
          Tensor sums = torch::zeros({256}, torch::kFloat64);
          for (std::int64_t i = std::max<std::int64_t>(0, n - 1 - reach); i + 1 < n; ++i) {
            const auto score = (keys[n - 1] * keys[i]).sum().item<double>() * scale;
            sums[text[static_cast<std::size_t>(i + 1)]] += std::exp(score);
          }
          return sums;
        };
        const Tensor context = masses(hidden.key[0], 64, 1 / (std::sqrt(16.0) * 0.7));
        const Tensor cache = masses(hidden.output[0], 4, tiny::cache(memory).theta);
        const double head_mass = std::exp(z.item<double>());
        const bool joint = tiny::context(memory).combine == "joint", any = n > 1;
        Tensor expected =
            joint ? (words * head_mass + context) / (head_mass + context.sum()) : words;
        const Tensor base = expected;
        const double l_m = joint ? 0 : tiny::context(memory).lambda,
                     l_c = tiny::cache(memory).lambda;
        expected = (1 - l_m - l_c) * base + l_c * (any ? cache / cache.sum() : base) +
                   l_m * (any ? context / context.sum() : base);
        DOCTEST_CHECK(
            (p[static_cast<std::int64_t>(row)].exp() - expected).abs().max().item<double>() < 1e-5);
      }
      if (step == 5) {  // rows separate and swap
        session.select({2, 0, 2, 1});
        texts = {texts[2], texts[0], texts[2], texts[1]};
      }
      Tokens next;
      for (std::size_t row = 0; row < texts.size(); ++row) {
        next.push_back(
            static_cast<std::int64_t>('a' + (static_cast<std::size_t>(step) * 3 + row) % 5));
        texts[row].push_back(next.back());
      }
      session.advance(next);
    }
  }
}

DOCTEST_TEST_CASE("beam search over a model is the plain search over whole encodings") {
  for (const char* arch : {"transformer", "lstm"}) {
    const auto loaded = loaded_of(arch);
    auto options = options_of(6);
    options.beam = 3, options.samples = 3, options.stop = {"t", "qu"};
    const auto found = samples(loaded, options, no_memory(), kPrompts);
    for (std::size_t prompt = 0; prompt < kPrompts.size(); ++prompt) {
      const auto stops = [&](const Tokens& tokens) {
        const std::string text(tokens.begin(), tokens.end());
        return text.ends_with("t") || text.ends_with("qu");
      };
      const auto ended = plain::beam(
          3, 1, 6,
          [&](const Tokens& tokens) {
            Tokens whole = bytes_of(kPrompts[prompt]);
            whole.insert(whole.end(), tokens.begin(), tokens.end());
            return next_word(*loaded.model, whole);
          },
          stops);
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        const auto& sample = found.at({prompt, rank});
        DOCTEST_CHECK(sample.tokens == ended[static_cast<std::size_t>(rank)].tokens);
        DOCTEST_CHECK(
            std::abs(sample.log_prob - ended[static_cast<std::size_t>(rank)].log_prob) < 1e-3);
        DOCTEST_CHECK((sample.finish == infer::Finish::stop) == stops(sample.tokens));
      }
    }
  }
}

DOCTEST_TEST_CASE("a beam takes its memories along") {
  const auto loaded = loaded_of("transformer");
  auto memory = tiny::memory_of("local");
  tiny::cache(memory).positions = 5, tiny::cache(memory).lambda = 0.4;
  auto options = options_of(12);
  options.beam = 4, options.samples = 4;
  for (const auto& [key, sample] : samples(loaded, options, memory, kPrompts)) {
    const auto windows = infer::plan_windows({}, *loaded.model);
    const auto plan = infer::plan_memory(memory, windows, *loaded.model);
    infer::ModuleEngine engine(*loaded.model, torch::kCPU);
    infer::Session session(engine, *loaded.model, windows.window, plan, torch::kCPU);
    session.start({bytes_of(kPrompts[key.first])});
    double log_prob = 0;
    for (const auto token : sample.tokens) {
      log_prob += session.log_probs()[0][token].item<double>();
      session.advance({token});
    }
    DOCTEST_CHECK(std::abs(log_prob - sample.log_prob) < 1e-3);
  }
}

DOCTEST_TEST_CASE("words that only pad a model's vocabulary are not drawn, by any way") {
  const auto loaded = loaded_of("transformer", "learned", 512);  // of bytes
  auto draw = options_of(200), cut = options_of(200), search = options_of(20);
  cut.draw.top_k = 400, cut.draw.top_p = 0.99F;
  search.beam = 4, search.samples = 4;
  for (const auto& options : {draw, cut, search})
    for (const auto& [key, sample] : samples(loaded, options, no_memory(), kPrompts))
      for (const auto token : sample.tokens) DOCTEST_REQUIRE(token < 256);
}

DOCTEST_TEST_CASE("a stop string ends a text, its own letters left out") {
  const auto loaded = loaded_of("transformer");
  auto options = options_of(400);
  const auto whole = samples(loaded, options, no_memory(), {"x"}).at({0, 0});
  DOCTEST_REQUIRE(whole.text.size() == 400);
  options.stop = {whole.text.substr(50, 3), "not in it, certainly"};
  const auto at = whole.text.find(options.stop[0]);
  const auto cut = samples(loaded, options, no_memory(), {"x"}).at({0, 0});
  DOCTEST_CHECK(cut.text == whole.text.substr(0, at));
  DOCTEST_CHECK(cut.tokens.size() == at + 3);
  DOCTEST_CHECK(cut.finish == infer::Finish::stop);
}

DOCTEST_TEST_CASE("output keeps the order of prompts, streams the first and holds the others") {
  core::MemorySink sink;
  infer::SampleOutput output(sink, {false, true, "--"}, 2, {});
  output.begin(infer::PromptReader(std::vector<std::string>{"P", "Q"}).next(2));
  output.piece(1, 0, "late");
  output.piece(0, 0, "\xC3");
  DOCTEST_CHECK(sink.text() == "P\xC3");
  output.piece(0, 0, "\xA9");
  DOCTEST_CHECK(sink.text() == "P\xC3\xA9");
  infer::Sample sample;
  sample.prompt = 1;
  output.finished(sample);
  sample.prompt = 0;
  output.finished(sample);
  output.piece(0, 1, "b");
  DOCTEST_CHECK(sink.text() == "P\xC3\xA9\n--\nPb");
  sample.sample = 1;
  output.finished(sample);
  output.end();
  DOCTEST_CHECK(sink.text() == "P\xC3\xA9\n--\nPb\n--\nQlate\n");
}

DOCTEST_TEST_CASE("all prompts of a reader are continued, batch by batch, and counted") {
  const auto loaded = loaded_of("lstm");
  auto options = options_of(8);
  options.batch = 2, options.samples = 2;
  std::string expected;
  for (const auto& [key, sample] : samples(loaded, options, no_memory(), kPrompts))
    expected += sample.text + "\n";
  infer::Generator generator(loaded, options, no_memory(), torch::kCPU);
  infer::PromptReader prompts(kPrompts);
  core::MemorySink sink;
  infer::SampleOutput output(sink, {}, options.samples, {});
  std::size_t finished = 0, checked = 0;
  infer::SampleCallbacks watch;
  watch.finished = [&](const infer::Sample&) { ++finished; };
  watch.checked = [&](const std::string&) { ++checked; };
  const auto totals = infer::sample_all(generator, prompts, output, watch);
  DOCTEST_CHECK(sink.text() == expected);
  DOCTEST_CHECK(totals.texts == 2 * kPrompts.size());
  DOCTEST_CHECK(totals.steps == 8 * totals.texts);
  DOCTEST_CHECK(finished == totals.texts);
  DOCTEST_CHECK(checked == 1);
}

DOCTEST_TEST_CASE("options that contradict themselves or the model are refused") {
  const auto loaded = loaded_of("lstm");
  const auto code = [&](const std::function<void(infer::GeneratorOptions&)>& change) {
    auto options = options_of(5);
    change(options);
    return thrown([&] { infer::Generator(loaded, options, no_memory(), torch::kCPU); }).code;
  };
  using Options = infer::GeneratorOptions;
  DOCTEST_CHECK(code([](Options&) {}) == 0);
  DOCTEST_CHECK(code([](Options& o) { o.beam = 2, o.samples = 3; }) == 64);
  DOCTEST_CHECK(code([](Options& o) { o.stop = {""}; }) == 64);
  DOCTEST_CHECK(code([](Options& o) { o.weights = "int8"; }) == 0);
  auto int8 = options_of(5);
  int8.weights = "int8";
  const auto bounded = loaded_of("mosaic");
  bounded.model->architecture->bound_slots({4, false});  // decodes by its modules
  DOCTEST_CHECK(
      thrown([&] { infer::Generator(bounded, int8, no_memory(), torch::kCPU); }).code == 69);
  auto bare = loaded;
  bare.tokenizer.clear();
  DOCTEST_CHECK(
      thrown([&] { infer::Generator(bare, options_of(5), no_memory(), torch::kCPU); }).code == 65);
}
