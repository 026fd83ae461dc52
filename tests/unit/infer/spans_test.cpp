// Texts with copied spans, compared with a plain loop: one token at a time, the whole text encoded
// anew, all entries of the store examined, and the rule applied to dense probabilities.

#include <doctest/doctest.h>

#include "infer/generate/generator.h"
#include "store_of_keys.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using tiny::bytes_of;
using torch::Tensor;
using Tokens = std::vector<std::int64_t>;

const std::string kStored =
    "the cat sat on the mat and the dog sat on the cat, a man had a hat on and sat";
const std::vector<std::string> kSpanPrompts = {
    "the cat sat", "a man had", "zz", "the dog sat on the c"};
constexpr double kLambda = 0.7, kTemperature = 0.5;

// Returns f and g (T, d) of a text.
nn::Hidden encode(nn::Model& model, const Tokens& tokens) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size());
  const Tensor zero = torch::zeros({1, n}, torch::kInt64);
  nn::Batch batch;
  batch.inputs = batch.targets = torch::tensor(tokens).unsqueeze(0);
  batch.weight = torch::ones({1, n});
  batch.place = {zero, zero, torch::arange(n).unsqueeze(0)};
  batch.fresh = torch::ones({1}, torch::kBool);
  const auto hidden = model.architecture->forward(batch, nullptr);
  return {hidden.output[0], hidden.key[0]};
}

struct Spanned {
  model::Loaded loaded;
  TemporaryFolder folder;
  std::vector<Stored> entries;
  infer::MemoryOptions memory = tiny::memory_of("none");
  infer::GeneratorOptions options;

  explicit Spanned(const std::string& arch, const std::string& positions = "learned") {
    loaded.folder = "tiny";
    loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, positions, 256));
    loaded.tokenizer = text::load_tokenizer("bytes")->json();
    const Tokens text = bytes_of(kStored);
    const Tensor keys = encode(*loaded.model, text).key.to(torch::kFloat16).to(torch::kFloat64);
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
      entries.push_back({keys[static_cast<std::int64_t>(i)], text[i + 1]});
    tiny::make_store(
        folder / "store", entries, 256, {"l2", "exact", "text", std::string(32, '0'), ""});
    tiny::stores(memory).folders = {folder / "store"}, tiny::stores(memory).combine = "interpolate";
    tiny::stores(memory).lambda = kLambda, tiny::stores(memory).temperature = kTemperature;
    options.max_tokens = 40, options.draw.temperature = 0, options.spans.longest = 6;
  }

  std::map<std::pair<std::uint64_t, std::int64_t>, infer::Sample> write(
      infer::SearchCounts* searches = nullptr) const {
    infer::Generator generator(loaded, options, memory, torch::kCPU);
    std::map<std::pair<std::uint64_t, std::int64_t>, infer::Sample> all;
    infer::GeneratorCallbacks watch;
    watch.finished = [&](const infer::Sample& sample) {
      all[{sample.prompt, sample.sample}] = sample;
    };
    generator.run(infer::PromptReader(kSpanPrompts).next(kSpanPrompts.size()), watch);
    if (searches != nullptr) *searches = generator.searches();
    return all;
  }

  // Returns p of every token (256), and the contribution of each entry.
  std::pair<Tensor, std::vector<double>> mixture(const Tokens& text) const {
    const torch::NoGradGuard no_gradient;
    const auto hidden = encode(*loaded.model, text);
    const auto last = hidden.output.size(0) - 1;
    Tensor p =
        loaded.model->head->log_probs(hidden.output.slice(0, last))[0].to(torch::kFloat64).exp();
    const Tensor query = hidden.key[last].to(torch::kFloat64);
    std::vector<double> gave;
    double sum = 0;
    for (const auto& entry : entries)
      sum += gave.emplace_back(
          std::exp(-(query - entry.key).square().sum().item<double>() / kTemperature));
    p *= 1 - kLambda;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      gave[i] *= kLambda / sum;
      p[entries[i].label] += gave[i];
    }
    return {p, gave};
  }

  struct Plain {
    Tokens tokens;
    std::vector<std::array<std::int64_t, 4>> spans;  // token, row, proposed, taken
    double log_prob = 0;
  };
  Plain plain(const std::string& prompt, core::Rng rng) const {
    Plain made;
    Tokens text = bytes_of(prompt), span;
    infer::Draw draw(options.draw);
    const auto half = entries.size() / 2;
    while (std::ssize(made.tokens) < options.max_tokens) {
      const auto [p, gave] = mixture(text);
      std::int64_t token = 0;
      const bool taken = !span.empty() &&
                         p[span[0]].item<double>() >= options.spans.gamma * p.max().item<double>();
      if (taken) {
        token = span[0];
        span.erase(span.begin());
        ++made.spans.back()[3];
      } else {
        const Tensor log_p = p.log().to(torch::kFloat32);
        token = draw({log_p.const_data_ptr<float>(), 256}, rng);
        span.clear();
      }
      text.push_back(token), made.tokens.push_back(token);
      made.log_prob += std::log(p[token].item<double>());
      if (taken) continue;
      double share = 0;
      std::size_t best = entries.size();
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i].label == token) {
          share += gave[i] / p[token].item<double>();
          if (best == entries.size() || gave[i] > gave[best]) best = i;
        }
      if (best == entries.size() || share < options.spans.share) continue;
      const auto room =
          std::min(options.spans.longest, options.max_tokens - std::ssize(made.tokens));
      for (auto row = best + 1; row < (best < half ? half : entries.size()); ++row)
        if (std::ssize(span) < room) span.push_back(entries[row].label);
      if (!span.empty())
        made.spans.push_back(
            {std::ssize(made.tokens) - 1, static_cast<std::int64_t>(best), std::ssize(span), 0});
    }
    return made;
  }
};

}  // namespace

DOCTEST_TEST_CASE("texts with spans are those of a plain loop, token for token") {
  for (const auto& [arch, positions] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "learned"}, {"transformer", "rope"}, {"lstm", "learned"}}) {
    Spanned of(arch, positions);
    std::int64_t wrong = 0, right = 0;
    for (const double gamma : {0.02, 0.6, 1.0}) {
      for (const double temperature : {0.0, 1.0}) {
        DOCTEST_CAPTURE(arch);
        DOCTEST_CAPTURE(gamma);
        DOCTEST_CAPTURE(temperature);
        of.options.spans.gamma = gamma, of.options.draw.temperature = temperature;
        of.options.samples = temperature > 0 ? 2 : 1;
        infer::SearchCounts searches;
        std::int64_t tokens = 0;
        for (const auto& [key, sample] : of.write(&searches)) {
          const auto expected = of.plain(kSpanPrompts[key.first],
              core::Rng(1, (key.first << 32) + static_cast<std::uint64_t>(key.second)));
          DOCTEST_CHECK(sample.tokens == expected.tokens);
          DOCTEST_CHECK(sample.log_prob == doctest::Approx(expected.log_prob).epsilon(1e-4));
          DOCTEST_REQUIRE(sample.spans.size() == expected.spans.size());
          for (std::size_t i = 0; i < expected.spans.size(); ++i) {
            const auto& span = sample.spans[i];
            const auto& [token, row, proposed, spanned] = expected.spans[i];
            DOCTEST_CHECK(span.token == token);
            DOCTEST_CHECK(span.row == row);
            DOCTEST_CHECK(span.proposed == proposed);
            DOCTEST_CHECK(span.taken == spanned);
            DOCTEST_CHECK(span.document == (span.row >= std::ssize(of.entries) / 2 ? 1 : 0));
            DOCTEST_CHECK(span.text == std::string(sample.tokens.begin() + span.token,
                                           sample.tokens.begin() + span.token + 1 + span.taken));
            right += span.taken, wrong += span.proposed - span.taken;
          }
          tokens += std::ssize(sample.tokens);
        }
        DOCTEST_CHECK(searches.made == tokens);
      }
    }
    DOCTEST_CHECK(right > 0);
    DOCTEST_CHECK(wrong > 0);
  }
}

DOCTEST_TEST_CASE(
    "spans of nothing but best words change no greedy text, those of no word no text") {
  for (const auto& [arch, positions] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "learned"}, {"transformer", "rope"}, {"mosaic", "learned"}}) {
    for (const std::int64_t window : {16, 80}) {
      for (const char* memory : {"none", "local", "cache", "follow"}) {
        DOCTEST_CAPTURE(arch);
        DOCTEST_CAPTURE(window);
        DOCTEST_CAPTURE(memory);
        Spanned of(arch, positions);
        const std::string name = memory;
        if (name == "local") tiny::context(of.memory).memory = name;
        if (name == "cache") tiny::cache(of.memory).positions = 9;
        if (name == "follow") tiny::stores(of.memory).follow = 1;
        of.options.window = window, of.options.spans.share = 0;
        for (const double gamma : {1.0, 1.5}) {
          of.options.draw.temperature = gamma > 1 ? 1 : 0;
          of.options.spans.gamma = gamma, of.options.spans.longest = 5;
          const auto with = of.write();
          of.options.spans.longest = 0;
          std::int64_t proposed = 0, taken = 0;
          for (const auto& [key, sample] : of.write()) {
            DOCTEST_CHECK(with.at(key).tokens == sample.tokens);
            DOCTEST_CHECK(with.at(key).log_prob == doctest::Approx(sample.log_prob).epsilon(1e-4));
            for (const auto& span : with.at(key).spans)
              proposed += span.proposed, taken += span.taken;
          }
          DOCTEST_CHECK(proposed > 0);
          DOCTEST_CHECK((taken > 0) == (gamma == 1));
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("spans want stores, and are no part of a beam") {
  Spanned of("transformer");
  of.options.beam = 2;
  DOCTEST_CHECK(thrown([&] { of.write(); }).names("--copy-spans"));
  of.options.beam = 0, tiny::stores(of.memory).folders.clear();
  DOCTEST_CHECK(thrown([&] { of.write(); }).code == 64);
}

DOCTEST_TEST_CASE("a span goes no further than its document, from the entry that gave most") {
  Spanned of("lstm");
  const infer::Stores stores(infer::open_each({of.folder / "store"}, torch::empty({0})), "", "",
      "tiny", of.entries[0].key.numel(), 256);
  const auto n = static_cast<std::int64_t>(of.entries.size()), half = n / 2;
  infer::SpanOptions options;
  options.longest = 4, options.share = 0.5;
  const std::vector<infer::StoreShare> shares = {
      {0, 3, 0.1}, {0, half - 3, 0.3}, {0, n - 1, 0.3}, {0, 5, 0.2}};
  const auto span = infer::propose_span(options, stores, shares, 9);
  DOCTEST_REQUIRE(span.has_value());
  DOCTEST_CHECK(span->from.row == half - 3);
  const auto label = [&](std::int64_t row) {
    return of.entries[static_cast<std::size_t>(row)].label;
  };
  DOCTEST_CHECK(span->rest == Tokens{label(half - 2), label(half - 1)});
  DOCTEST_CHECK(!infer::propose_span(options, stores, std::span(shares).first(2), 9));
  DOCTEST_CHECK(!infer::propose_span(options, stores, shares, 0));
  const std::vector<infer::StoreShare> last = {{0, n - 1, 0.9}}, first = {{0, 0, 0.9}};
  DOCTEST_CHECK(!infer::propose_span(options, stores, last, 9));
  DOCTEST_CHECK(infer::propose_span(options, stores, first, 9)->rest ==
                Tokens{label(1), label(2), label(3), label(4)});
}
