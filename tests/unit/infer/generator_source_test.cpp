// Translations, compared with a plain beam search over a model that encodes its source anew at each
// step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "infer/generate/generator.h"
#include "nn/base/torch.h"
#include "nn/layers/embedding.h"
#include "plain_beam.h"
#include "store_of_keys.h"
#include "text/formats/tokenizer_json.h"
#include "text/learn/learn.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;
using Tokens = std::vector<std::int64_t>;
using Key = std::pair<std::uint64_t, std::int64_t>;

constexpr std::int64_t kSentenceEnd = 256;

/// The tokens are the 256 bytes and an end token, which is likely enough to occur.
model::Loaded translator(const std::string& positions = "sinusoidal") {
  model::Loaded loaded;
  loaded.folder = "tiny";
  loaded.tokenizer = text::learn_bpe({}, {257, 1}, [](std::uint64_t) {})->json();
  loaded.model =
      std::make_shared<nn::Model>(tiny::model_of("encoder-decoder", positions, kSentenceEnd + 1));
  const torch::NoGradGuard no_gradient;
  loaded.model->architecture->embedding()->tables[0][kSentenceEnd] *= 2;
  return loaded;
}

infer::GeneratorOptions beam_options(std::int64_t beam, double penalty = 1) {
  infer::GeneratorOptions options;
  options.translation.source = true;
  options.translation.max_len_a = 0.5, options.translation.max_len_b = 2;
  options.beam = options.samples = beam, options.length_penalty = penalty;
  return options;
}

Tokens source_of(const model::Loaded& loaded, const std::string& line) {
  const auto ids = text::parse_tokenizer(loaded.tokenizer, "tiny")->encode(line);
  Tokens source(ids.begin(), ids.end());
  source.push_back(kSentenceEnd);
  return source;
}

// Returns the hidden state of the last token of a translation, encoded from scratch: (1, d) each.
nn::Hidden last_of(
    nn::Model& model, const Tokens& source, const Tokens& tokens, Tokens inputs = {kSentenceEnd}) {
  const torch::NoGradGuard no_gradient;
  inputs.insert(inputs.end(), tokens.begin(), tokens.end());
  const auto n = static_cast<std::int64_t>(inputs.size());
  nn::Batch batch;
  batch.inputs = batch.targets = torch::tensor(inputs).unsqueeze(0);
  batch.weight = torch::ones({1, n});
  const Tensor zero = torch::zeros({1, n}, torch::kInt64);
  batch.place = {zero, zero, torch::arange(n).unsqueeze(0)};
  batch.fresh = torch::ones({1}, torch::kBool);
  batch.source = torch::tensor(source).unsqueeze(0);
  const auto hidden = model.architecture->forward(batch, nullptr);
  return {hidden.output[0].slice(0, n - 1), hidden.key[0].slice(0, n - 1)};
}

// Returns log p of the next token.
Tensor next_word(nn::Model& model, const Tokens& source, const Tokens& tokens,
    const Tokens& inputs = {kSentenceEnd}) {
  return model.head->log_probs(last_of(model, source, tokens, inputs).output)[0];
}

std::map<Key, infer::Sample> translate(const model::Loaded& loaded,
    const infer::GeneratorOptions& options, const std::vector<std::string>& lines,
    std::vector<std::string>* warnings = nullptr, const infer::MemoryOptions& memory = {}) {
  infer::Generator generator(loaded, options, memory, torch::kCPU);
  std::map<Key, infer::Sample> all;
  infer::GeneratorCallbacks watch;
  watch.finished = [&](const infer::Sample& sample) {
    all[{sample.prompt, sample.sample}] = sample;
  };
  if (warnings != nullptr)
    watch.warn = [warnings](const std::string& text) { warnings->push_back(text); };
  generator.run(infer::PromptReader(lines).next(lines.size()), watch);
  return all;
}

const std::vector<std::string> kLines = {
    "der Hund sieht", "a", "12 34 56 78 90 12", "rot", "d\xC3\xA9j\xC3\xA0", "zz und", "die Katze"};

}  // namespace

DOCTEST_TEST_CASE("a translation is what plain beam search finds, in any batch") {
  int ended = 0, cut = 0;
  for (const char* positions : {"sinusoidal", "learned", "rope", "alibi"}) {
    const auto loaded = translator(positions);
    const auto newline = source_of(loaded, "\n")[0];
    const auto ends = [&](const Tokens& tokens) {
      return tokens.back() == kSentenceEnd || tokens.back() == newline;
    };
    for (const double penalty : {0.0, 0.6, 1.0}) {
      auto options = beam_options(3, penalty), alone = options;
      alone.batch = 1, options.batch = 12;
      const auto found = translate(loaded, options, kLines);
      const auto singly = translate(loaded, alone, kLines);
      for (std::size_t line = 0; line < kLines.size(); ++line) {
        const auto source = source_of(loaded, kLines[line]);
        const auto most = static_cast<std::int64_t>(source.size()) / 2 + 2;
        const auto expected = plain::beam(
            3, penalty, most,
            [&](const Tokens& tokens) { return next_word(*loaded.model, source, tokens); }, ends);
        for (std::int64_t rank = 0; rank < 3; ++rank) {
          const auto& wanted = expected[static_cast<std::size_t>(rank)];
          for (const auto* samples : {&found, &singly}) {
            const auto& sample = samples->at({line, rank});
            DOCTEST_CHECK(sample.tokens == wanted.tokens);
            DOCTEST_CHECK(std::abs(sample.log_prob - wanted.log_prob) < 1e-3);
            DOCTEST_CHECK((sample.finish == infer::Finish::length) == !ends(sample.tokens));
          }
          ++(ends(wanted.tokens) ? ended : cut);
        }
      }
    }
  }
  DOCTEST_CHECK(ended > 20);
  DOCTEST_CHECK(cut > 20);
}

DOCTEST_TEST_CASE("drawn translations are of their source, whatever is beside them") {
  const auto loaded = translator();
  auto options = beam_options(0);
  options.samples = 2, options.draw.temperature = 0;
  for (const auto& [key, sample] : translate(loaded, options, kLines)) {
    const auto source = source_of(loaded, kLines[key.first]);
    Tokens before;
    for (const auto token : sample.tokens) {
      DOCTEST_CHECK(
          token == next_word(*loaded.model, source, before).argmax().item<std::int64_t>());
      before.push_back(token);
    }
  }
}

DOCTEST_TEST_CASE("where a full window keeps its newer half, the source is read again") {
  const auto loaded = translator("learned");
  auto options = beam_options(0);
  options.samples = 1, options.draw.temperature = 0, options.window = 6, options.ignore_end = true;
  options.translation.max_len_a = 0, options.translation.max_len_b = 30;
  for (const auto& [key, sample] : translate(loaded, options, {"der Hund sieht", "die Katze"})) {
    const auto source = source_of(loaded, key.first == 0 ? "der Hund sieht" : "die Katze");
    Tokens seen{kSentenceEnd};
    DOCTEST_CHECK(sample.tokens.size() > 12);
    for (const auto token : sample.tokens) {
      const auto p = next_word(*loaded.model, source, seen, Tokens{});
      DOCTEST_REQUIRE(token == p.argmax().item<std::int64_t>());
      if (seen.size() == 6) seen.erase(seen.begin(), seen.begin() + 3);
      seen.push_back(token);
    }
  }
}

DOCTEST_TEST_CASE("stores join a translation as by hand, and are cited with what they gave") {
  const torch::NoGradGuard no_gradient;
  const auto loaded = translator();
  nn::Model& model = *loaded.model;
  const auto newline = source_of(loaded, "\n")[0];
  const auto entries = tiny::entries_of(50, 16, kSentenceEnd + 1, 4);
  const TemporaryFolder folder;
  for (const auto& [metric, combine] : std::vector<std::pair<std::string, std::string>>{
           {"l2", "interpolate"}, {"ip", "joint"}, {"ip", "released"}}) {
    DOCTEST_CAPTURE(combine);
    const auto store = folder / combine;
    tiny::make_store(store, entries, kSentenceEnd + 1,
        {metric, "exact", "text", loaded.fingerprint.hex(),
            model::tokenizer_fingerprint(loaded.tokenizer)});
    infer::MemoryOptions memory = tiny::memory_of("none");
    memory.joint_temperature = 0.8;
    tiny::stores(memory).folders = {store}, tiny::stores(memory).combine = combine,
    tiny::stores(memory).k = 6;
    tiny::stores(memory).lambda = 0.4, tiny::stores(memory).temperature = 2;
    // Returns p of every token and the stores' part of it.
    const auto both = [&, metric = metric, combine = combine](
                          const Tokens& source, const Tokens& tokens) {
      const auto hidden = last_of(model, source, tokens);
      Tensor z;
      const Tensor words = model.head->log_probs(hidden.output, &z)[0].to(torch::kFloat64).exp();
      std::vector<std::pair<double, std::int64_t>> scores;
      for (const auto& entry : entries) {
        const Tensor q = hidden.key[0].to(torch::kFloat64), k = entry.key;
        const Tensor score = metric == "ip" ? q.dot(k) : -(q - k).square().sum();
        scores.emplace_back(score.item<double>(), entry.label);
      }
      std::sort(scores.rbegin(), scores.rend());
      const double divisor = combine == "interpolate" ? 2 : std::sqrt(16.0) * 0.8;
      Tensor part = torch::zeros_like(words);
      for (std::size_t i = 0; i < 6; ++i)
        part[scores[i].second] += std::exp(scores[i].first / divisor);
      const double all = part.sum().item<double>(), head = std::exp(z.item<double>());
      const double share = combine == "interpolate" ? 0.4 : all / (head + all);
      part *= (combine == "released" ? 1 : share) / all;
      return std::pair(Tensor(part + (1 - share) * words), part);
    };
    auto options = beam_options(3, 0.6);
    options.cite = true;
    const auto found = translate(loaded, options, kLines, nullptr, memory);
    for (const std::size_t line : {0, 2, 5}) {
      const auto source = source_of(loaded, kLines[line]);
      const auto expected = plain::beam(
          3, 0.6, static_cast<std::int64_t>(source.size()) / 2 + 2,
          [&](const Tokens& tokens) { return both(source, tokens).first.log(); },
          [&](const Tokens& tokens) {
            return tokens.back() == kSentenceEnd || tokens.back() == newline;
          });
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        const auto& sample = found.at({line, rank});
        DOCTEST_CHECK(sample.tokens == expected[static_cast<std::size_t>(rank)].tokens);
        DOCTEST_REQUIRE(sample.cited.size() == sample.tokens.size());
        Tokens before;
        for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
          const auto token = sample.tokens[i];
          const auto [p, part] = both(source, before);
          const double share = part[token].item<double>() / p[token].item<double>();
          DOCTEST_CHECK(std::abs(sample.cited[i].share - share) < 1e-3);
          before.push_back(token);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("an empty line stays empty; one too long is named, or cut with a warning") {
  const auto loaded = translator();
  auto options = beam_options(2);
  const auto found = translate(loaded, options, {"ab", "", "abcdefgh", ""});
  for (const std::uint64_t line : {1, 3})
    for (const std::int64_t rank : {0, 1}) {
      DOCTEST_CHECK(found.at({line, rank}).text.empty());
      DOCTEST_CHECK(found.at({line, rank}).tokens.empty());
    }
  options.translation.max_source = 8;  // 7 letters and the end
  const auto error = thrown([&] { translate(loaded, options, {"ab", "abcdefg", "abcdefgh"}); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.text.find("line 3") != std::string::npos);
  options.translation.truncate = true;
  std::vector<std::string> warnings;
  const auto cut = translate(loaded, options, {"abcdefg", "abcdefghij"}, &warnings);
  DOCTEST_CHECK(cut.at({0, 0}).tokens == cut.at({1, 0}).tokens);
  DOCTEST_REQUIRE(warnings.size() == 1);
  DOCTEST_CHECK(warnings[0].find("line 2") != std::string::npos);
  // Learned positions limit the source too: tiny::model_of has 96.
  options = beam_options(2);
  const auto long_line = std::string(96, 'x');
  DOCTEST_CHECK(thrown([&] { translate(translator("learned"), options, {long_line}); }).code == 65);
  DOCTEST_CHECK(thrown([&] { translate(loaded, options, {long_line}); }).code == 0);
}

DOCTEST_TEST_CASE("sources are for an encoder-decoder, which takes nothing else") {
  auto loaded = translator();
  auto options = beam_options(2);
  options.translation.source = false;
  DOCTEST_CHECK(thrown([&] { translate(loaded, options, {"a"}); }).code == 64);
  options.translation.source = true;
  auto other = loaded;
  other.model = std::make_shared<nn::Model>(tiny::model_of("lstm", "learned", kSentenceEnd + 1));
  DOCTEST_CHECK(thrown([&] { translate(other, options, {"a"}); }).code == 64);
  loaded.tokenizer = text::load_tokenizer("bytes")->json();  // has no end token
  DOCTEST_CHECK(thrown([&] { translate(loaded, options, {"a"}); }).code == 65);
}
