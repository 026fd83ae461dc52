// Models whose weights are packed while they are read, compared with whole models.
#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <vector>

#include "engines.h"
#include "infer/answers/answerer.h"
#include "infer/generate/generator_prompts.h"
#include "infer/loops/make_engine.h"
#include "infer/loops/transformer_engine.h"
#include "model/folder.h"
#include "nn/base/torch.h"
#include "nn/layers/embedding.h"
#include "tiny.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kSize = 37;

// Saves a model with weights that bfloat16 has exactly.
nn::Model saved_model(const TemporaryFolder& folder, bool tied, std::int64_t size = kSize) {
  nn::Model model = engine_model(
      [&](nn::ModelOptions& o) {
        o.shape.d_model = 64;
        o.vocabulary.tied = tied;
        o.vocabulary.scale_embedding = true;
        o.transformer.feed_forward = "gated";
      },
      size);
  model.to(torch::kBFloat16);
  model.to(torch::kFloat32);
  model::save(folder.path, model, {{"memory", "local"}, {"segment", 16}}, "");
  return model;
}

}  // namespace

DOCTEST_TEST_CASE("weights that are packed as they are read decode as those of the whole model") {
  const torch::NoGradGuard no_gradient;
  const std::vector<infer::RowInput> feeds{infer::RowInput{{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}}};
  for (const std::string type : {"bfloat16", "int8"}) {
    const auto precision = infer::parse_precision(type);
    for (const bool tied : {true, false}) {
      const TemporaryFolder folder;
      nn::Model whole = saved_model(folder, tied);
      const auto loaded = infer::load_to_decode(folder.path, torch::kCPU, type);
      const auto* const packed = infer::packed_in(loaded);
      DOCTEST_REQUIRE(packed != nullptr);
      const auto table = whole.architecture->embedding()->tables.at(0);
      const auto* const words = packed->find(loaded.model->architecture->embedding()->tables.at(0));
      DOCTEST_REQUIRE(words != nullptr);
      const Tensor unpacked = torch::empty(table.sizes());
      for (std::int64_t i = 0; i < kSize; ++i) words->row(i, unpacked[i].data_ptr<float>());
      DOCTEST_CHECK(difference(unpacked, table) <= 0.01 * table.abs().max().item<float>());
      const auto engine =
          infer::make_engine(*loaded.model, torch::kCPU, precision, /*record=*/true, packed);
      infer::TransformerEngine reference(whole, precision);
      if (!tied) table.copy_(unpacked);  // the reference looks up what it did not pack
      engine->open(1), reference.open(1);
      const auto got = engine->feed(feeds), expected = reference.feed(feeds);
      const Tensor rows = engine->head().log_probs(got.output, nullptr);
      if (!tied || precision == infer::Precision::bfloat16) {
        DOCTEST_CHECK(torch::equal(got.output, expected.output));
        DOCTEST_CHECK(torch::equal(got.key, expected.key));
        DOCTEST_CHECK(torch::equal(rows, reference.head().log_probs(expected.output, nullptr)));
      } else {
        DOCTEST_CHECK(difference(rows, reference.head().log_probs(expected.output, nullptr)) < 0.5);
      }
      const Tensor targets = torch::arange(rows.size(0));
      const auto block = engine->head().block(got.output, targets, false);
      DOCTEST_CHECK(torch::equal(block->log_prob, rows.gather(1, targets.unsqueeze(1)).squeeze(1)));
    }
  }
}

DOCTEST_TEST_CASE("words have the mean vectors of their tokens, minus the vocabulary's mean") {
  const TemporaryFolder folder;
  const nn::Model whole = saved_model(folder, /*tied=*/true, 256);
  const auto table = whole.architecture->embedding()->tables.at(0);
  const std::vector<std::string_view> words = {"boiler", "x"};
  for (const std::string type : {"float32", "int8"}) {
    auto loaded = infer::load_to_decode(folder.path, torch::kCPU, type);
    model::give_tokenizer(loaded, "bytes");
    DOCTEST_CHECK((infer::packed_in(loaded) != nullptr) == (type == "int8"));
    const Tensor got = infer::word_vectors(loaded)(words);
    DOCTEST_REQUIRE(got.sizes() == torch::IntArrayRef{2, table.size(1)});
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string text = " " + std::string(words[i]);
      std::vector<double> expected;
      double square = 0;
      for (std::int64_t j = 0; j < table.size(1); ++j) {
        double x = 0, mean = 0;
        for (const char c : text) x += table[static_cast<unsigned char>(c)][j].item<double>();
        for (std::int64_t id = 0; id < 256; ++id) mean += table[id][j].item<double>() / 256;
        expected.push_back(x / static_cast<double>(text.size()) - mean);
        square += expected.back() * expected.back();
      }
      double dot = 0;
      for (std::size_t j = 0; j < expected.size(); ++j)
        dot += expected[j] / std::sqrt(square) *
               got[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>();
      DOCTEST_CHECK(dot == doctest::Approx(1).epsilon(type == "float32" ? 1e-5 : 1e-2));
    }
  }
}

DOCTEST_TEST_CASE("a model without its packed weights has their shapes, and the same fingerprint") {
  const TemporaryFolder folder;
  const nn::Model whole = saved_model(folder, true);
  const auto plain = model::load(folder.path);
  const auto packed = infer::load_to_decode(folder.path, torch::kCPU, "int8");
  DOCTEST_CHECK(packed.fingerprint.hex() == plain.fingerprint.hex());
  DOCTEST_CHECK(infer::packed_in(plain) == nullptr);
  const auto expected = plain.model->named_weights(), found = packed.model->named_weights();
  DOCTEST_REQUIRE(found.size() == expected.size());
  std::size_t taken = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& weight = found[i].second;
    DOCTEST_CHECK(weight.sizes() == expected[i].second.sizes());
    if (infer::packed_in(packed)->find(weight) == nullptr) {
      DOCTEST_CHECK(torch::equal(weight, expected[i].second));
      continue;
    }
    ++taken;
    DOCTEST_CHECK(weight.isnan().all().item<bool>());
    DOCTEST_CHECK(weight.storage().nbytes() == 4);
  }
  DOCTEST_CHECK(taken == 9);  // four matrices in each of two layers, and the table
  const auto wide = infer::load_to_decode(folder.path, torch::kCPU, "float32");
  DOCTEST_CHECK(infer::packed_in(wide) == nullptr);
  DOCTEST_CHECK(wide.fingerprint.hex() == plain.fingerprint.hex());
  const auto all = wide.model->named_weights();
  for (std::size_t i = 0; i < all.size(); ++i)
    DOCTEST_CHECK(torch::equal(all[i].second, expected[i].second));
}

DOCTEST_TEST_CASE("the memory of all taken weights is free before the first is read") {
  // Takes the matrices; what it leaves are vectors.
  struct Taker : model::WeightTaker {
    std::vector<Tensor> taken, left;
    std::size_t rows = 0;
    bool takes(const nn::Model& /*model*/, const Tensor& weight) override {
      if (weight.dim() == 2) taken.push_back(weight);
      return weight.dim() == 2;
    }
    void take(const Tensor& weight, std::int64_t /*first*/, const Tensor& part) override {
      DOCTEST_CHECK(weight.sizes().slice(1) == part.sizes().slice(1));
      for (const auto& other : taken) DOCTEST_CHECK(other.storage().nbytes() == 4);
      DOCTEST_CHECK(!left.empty());
      rows += static_cast<std::size_t>(part.size(0));
    }
    void leaves(std::span<const Tensor> weights) override {
      left.assign(weights.begin(), weights.end());
    }
  };
  const TemporaryFolder folder;
  const nn::Model whole = saved_model(folder, true);
  const auto taker = std::make_shared<Taker>();
  const auto loaded = model::load(folder.path, torch::kCPU, torch::kFloat32, {}, taker);
  std::size_t rows = 0, vectors = 0;
  for (const auto& [name, weight] : whole.named_weights()) {
    if (weight.dim() == 2) {
      rows += static_cast<std::size_t>(weight.size(0));
    } else {
      ++vectors;
    }
  }
  DOCTEST_CHECK(taker->rows == rows);
  DOCTEST_CHECK(taker->left.size() == vectors);
  for (const auto& weight : taker->left) DOCTEST_CHECK(!weight.isnan().any().item<bool>());
}

DOCTEST_TEST_CASE("an Answerer scores on packed weights as decoding token by token does") {
  for (const bool tied : {true, false}) {
    const TemporaryFolder folder;
    saved_model(folder, tied, 256);
    infer::AnswererOptions options;
    options.model = folder.path;
    options.tokenizer = "bytes";
    options.compute.device = "cpu";
    options.compute.precision = "int8";
    tiny::context(options.memory).memory = "none";
    const auto packed =
        infer::load_to_decode(folder.path, torch::kCPU, "int8", {}, torch::kFloat32);
    infer::Answerer answerer(options, packed), own(options);
    const std::vector<std::vector<std::int64_t>> texts{{84, 104, 101}, {32, 99, 97, 116, 10}};
    const auto engine = infer::make_engine(
        *packed.model, torch::kCPU, infer::Precision::int8, false, infer::packed_in(packed));
    std::vector<std::vector<double>> expected;
    for (const auto& text : texts) {
      engine->open(1);
      expected.emplace_back();
      for (std::size_t i = 0; i + 1 < text.size(); ++i)
        expected.back().push_back(engine->head()
                                      .log_probs(engine->feed({infer::RowInput{{text[i]}}}).output,
                                          nullptr)[0][text[i + 1]]
                                      .item<double>());
    }
    const auto near = [&](const std::vector<infer::TokenScores>& scores) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        DOCTEST_REQUIRE(scores[i].log_prob.size() == expected[i].size());
        for (std::size_t j = 0; j < expected[i].size(); ++j)
          DOCTEST_CHECK(std::abs(scores[i].log_prob[j] - expected[i][j]) < 1e-5);
      }
    };
    near(answerer.score_tokens(texts, answerer.memory()));
    near(own.score_tokens(texts, own.memory()));
    // In pieces; another text is scored between two.
    bool nested = false;
    infer::Pace::Sizes sizes;
    infer::Pace pace(sizes, [&] {
      if (!std::exchange(nested, true)) near(answerer.score_tokens(texts, answerer.memory()));
      return true;
    });
    near(answerer.score_tokens(texts, answerer.memory(), &pace));
    DOCTEST_CHECK(nested);
    const auto table = packed.model->architecture->embedding()->tables.at(0);
    DOCTEST_CHECK(table.isnan().all().item<bool>());  // never read as float32
  }
}

DOCTEST_TEST_CASE("windows on int8 weights: padding and batches change nothing, State goes on") {
  const torch::NoGradGuard no_gradient;
  const TemporaryFolder folder;
  saved_model(folder, true);
  const auto loaded = infer::load_to_score(folder.path, torch::kCPU, "int8");
  auto& encoder = *loaded.model->architecture;
  const auto batch_of = [](std::int64_t rows, std::int64_t steps, const auto& is_padding) {
    nn::Batch batch = nn::Batch::padding(rows, steps);
    batch.fresh = torch::zeros({rows}, torch::kBool);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t t = 0; t < steps; ++t) {
        batch.inputs[row][t] = (5 * row + 3 * t) % kSize;
        if (!is_padding(row, t)) batch.place.run[row][t] = row;
      }
    return batch;
  };
  const auto padded = [](std::int64_t row, std::int64_t t) {
    return row == 1 ? t >= 4 : row == 2 && t < 2;
  };
  const auto none = [](std::int64_t, std::int64_t) { return false; };
  const nn::Batch batch = batch_of(3, 7, padded);
  const auto together = encoder.forward(batch, nullptr);
  const auto plain = infer::load_to_decode(folder.path, torch::kCPU, "int8", {}, torch::kFloat32);
  const auto engine = infer::make_engine(
      *plain.model, torch::kCPU, infer::Precision::int8, false, infer::packed_in(plain));
  for (std::int64_t row = 0; row < 3; ++row) {
    engine->open(1);
    for (std::int64_t t = 0; t < 7; ++t) {
      if (padded(row, t)) continue;
      const auto hidden =
          engine->feed({infer::RowInput{{batch.inputs[row][t].item<std::int64_t>()}}});
      DOCTEST_CHECK(difference(together.output[row][t], hidden.output[0]) < 1e-5);
      DOCTEST_CHECK(difference(together.key[row][t], hidden.key[0]) < 1e-5);
    }
  }
  const nn::Batch whole = batch_of(1, 7, none);
  const auto at_once = encoder.forward(whole, nullptr);
  nn::State state;
  for (const bool again : {false, true})  // a row that is fresh forgets what it has read
    for (std::int64_t begin = 0; begin < 7; begin += 3) {
      const auto end = std::min<std::int64_t>(begin + 3, 7);
      nn::Batch piece = batch_of(1, end - begin, none);
      piece.inputs = whole.inputs.slice(1, begin, end);
      piece.fresh[0] = again && begin == 0;
      DOCTEST_CHECK(difference(encoder.forward(piece, &state).output,
                        at_once.output.slice(1, begin, end)) < 1e-5);
    }
}
