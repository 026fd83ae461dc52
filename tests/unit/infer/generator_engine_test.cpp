// The decoding loops, compared with the model's modules.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.h"
#include "core/rng.h"
#include "engines.h"
#include "infer/decode/decode_engine.h"
#include "infer/decode/decode_weights.h"
#include "infer/loops/transformer_engine.h"
#include "nn/base/torch.h"
#include "tiny.h"
#include "transformers.h"

namespace {

using torch::Tensor;

}  // namespace

DOCTEST_TEST_CASE("the decoder's loops give what the modules give, for every kind of transformer") {
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, change] : transformer_variants()) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    DOCTEST_REQUIRE(infer::TransformerEngine::fits(model, torch::kCPU));
    infer::TransformerEngine loops(model, infer::Precision::float32);
    expect_modules(model, loops);
  }
}

DOCTEST_TEST_CASE(
    "keys and values in float16: near those in float32, for every kind of transformer") {
  const torch::NoGradGuard no_gradient;
  std::vector<std::int64_t> text;
  for (std::int64_t i = 0; i < 41; ++i) text.push_back(i * i % 37);
  for (const auto& [name, change] : transformer_variants()) {
    DOCTEST_CAPTURE(name);
    nn::Model model = engine_model(change, 37);
    infer::TransformerEngine whole(model, infer::Precision::float32),
        halved(model, infer::Precision::float32);
    DOCTEST_REQUIRE(halved.halve_keys());
    const auto fed = [&](infer::Engine& engine) {
      engine.open(1);
      engine.feed({infer::RowInput{{text.begin(), text.end() - 1}, true}});
      return engine.feed({infer::RowInput{{text.back()}, false}}).output;
    };
    const auto a = fed(whole), b = fed(halved);
    DOCTEST_CHECK(torch::allclose(a, b, 2e-2, 2e-2));
    DOCTEST_CHECK(!torch::equal(a, b));
  }
}

DOCTEST_TEST_CASE(
    "a row is the same to the last bit whatever stands beside it and however it is fed") {
  using infer::Precision;
  for (const auto& [precision, halved] : std::vector<std::pair<Precision, bool>>{
           {Precision::float32, false}, {Precision::bfloat16, false}, {Precision::int8, false},
           {Precision::float32, true}, {Precision::int8, true}}) {
    nn::Model model = engine_model([](nn::ModelOptions& o) { o.shape.d_model = 64; }, 37);
    infer::TransformerEngine engine(model, precision);
    if (halved) engine.halve_keys();
    core::Rng rng(8);
    std::vector<std::vector<std::int64_t>> texts;
    for (const std::size_t length : {70, 3, 19, 1, 50, 33, 8}) {
      auto& text = texts.emplace_back();
      for (std::size_t i = 0; i < length; ++i)
        text.push_back(static_cast<std::int64_t>(rng.below(37)));
    }
    std::vector<infer::RowInput> all;
    for (const auto& text : texts) all.push_back({text, false});
    engine.open(static_cast<std::int64_t>(texts.size()));
    const auto together = engine.feed(all);
    const auto p = engine.head().log_probs(together.output, nullptr);
    std::int64_t begin = 0;
    for (const auto& text : texts) {
      engine.open(1);
      for (const auto token : text) {
        const auto one = engine.feed({infer::RowInput{{token}, false}});
        DOCTEST_REQUIRE(torch::equal(one.output[0], together.output[begin]));
        DOCTEST_REQUIRE(torch::equal(one.key[0], together.key[begin]));
        DOCTEST_REQUIRE(torch::equal(engine.head().log_probs(one.output, nullptr)[0], p[begin]));
        ++begin;
      }
    }
  }
}

DOCTEST_TEST_CASE("rows that share a past part without touching each other") {
  nn::Model model = engine_model([](nn::ModelOptions&) {}, 37);
  infer::TransformerEngine engine(model, infer::Precision::float32);
  engine.open(1);
  const std::vector<std::int64_t> past{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  engine.feed({infer::RowInput{past, false}});
  engine.select({0, 0, 0});
  Tensor last;
  for (std::int64_t step = 0; step < 6; ++step)
    last = engine
               .feed({infer::RowInput{{step}, false}, infer::RowInput{{step + 10}, false},
                   infer::RowInput{{step + 20}, false}})
               .output;
  for (std::int64_t row = 0; row < 3; ++row) {
    auto text = past;
    for (std::int64_t step = 0; step < 6; ++step) text.push_back(step + 10 * row);
    engine.open(1);
    DOCTEST_CHECK(torch::equal(engine.feed({infer::RowInput{text, false}}).output[19], last[row]));
  }
}

DOCTEST_TEST_CASE("narrow weights are off by what rounding them says, and no more") {
  nn::Model model = engine_model([](nn::ModelOptions& o) { o.shape.d_model = 128; }, 300);
  std::vector<std::int64_t> text;
  core::Rng rng(2);
  for (int i = 0; i < 20; ++i) text.push_back(static_cast<std::int64_t>(rng.below(300)));
  infer::ModuleEngine modules(model, torch::kCPU);
  const auto error = [&](infer::Precision precision) {
    infer::TransformerEngine engine(model, precision);
    return infer::compare(modules, engine, text);
  };
  const auto exact = error(infer::Precision::float32), half = error(infer::Precision::bfloat16),
             byte = error(infer::Precision::int8);
  DOCTEST_CHECK(exact.max < 1e-4);
  DOCTEST_CHECK(exact.same_best == 1);
  DOCTEST_CHECK(half.rms > exact.rms);
  DOCTEST_CHECK(half.rms < 0.02);
  DOCTEST_CHECK(byte.rms > half.rms);
  DOCTEST_CHECK(byte.rms < 0.1);
  DOCTEST_CHECK(byte.divergence < 0.01);
}

DOCTEST_TEST_CASE(
    "a model that stands in bfloat16 gives what it gives as float32, to the last bit") {
  const torch::NoGradGuard no_gradient;
  for (const auto precision :
      {infer::Precision::float32, infer::Precision::bfloat16, infer::Precision::int8}) {
    for (const std::int64_t d : {32, 24}) {  // rows that can be used in place, and rows that cannot
      nn::Model narrow = engine_model(
          [d](nn::ModelOptions& o) {
            o.shape.d_model = d, o.shape.heads = 2, o.vocabulary.scale_embedding = true;
          },
          37);
      narrow.to(torch::kBFloat16);
      nn::Model wide(narrow.options, 37);
      const auto weights = wide.named_weights(), rounded = narrow.named_weights();
      for (std::size_t i = 0; i < weights.size(); ++i)
        Tensor(weights[i].second).copy_(rounded[i].second);
      DOCTEST_REQUIRE(infer::TransformerEngine::fits(narrow, torch::kCPU));
      infer::TransformerEngine a(narrow, precision), b(wide, precision);
      a.open(1), b.open(1);
      const auto of_narrow = a.feed({infer::RowInput{{3, 1, 4, 1, 5, 9, 2, 6}}}),
                 of_wide = b.feed({infer::RowInput{{3, 1, 4, 1, 5, 9, 2, 6}}});
      DOCTEST_CHECK(torch::equal(of_narrow.output, of_wide.output));
      DOCTEST_CHECK(torch::equal(of_narrow.key, of_wide.key));
      DOCTEST_CHECK(torch::equal(a.head().log_probs(of_narrow.output, nullptr),
          b.head().log_probs(of_wide.output, nullptr)));
    }
  }
}

DOCTEST_TEST_CASE("weights that lie as they are wanted are borrowed, not copied") {
  const Tensor weight = torch::randn({8, 32}).to(torch::kBFloat16), x = torch::randn({1, 32});
  const auto product = [&](const infer::PackedMatrix& matrix) {
    const Tensor y = torch::zeros({1, 8});
    matrix.multiply(x.const_data_ptr<float>(), 1, 32, 0, matrix.panels(), y.data_ptr<float>(), 8);
    return y;
  };
  const auto borrowed = infer::pack(weight, 0, 8, infer::Precision::bfloat16);
  const auto copied = infer::pack(weight, 0, 8, infer::Precision::int8);
  weight.zero_();
  DOCTEST_CHECK(product(borrowed).abs().max().item<float>() == 0);
  DOCTEST_CHECK(product(copied).abs().max().item<float>() > 0);
}

DOCTEST_TEST_CASE("a packed product is the plain one, for any shape") {
  core::Rng rng(6);
  for (const auto& [out, in] :
      std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {4, 16}, {7, 33}, {50, 64}}) {
    for (const std::int64_t rows : {1, 2, 5, 6, 7, 13}) {
      const Tensor weight = torch::randn({out, in}), x = torch::randn({rows, in});
      const auto packed = [&, out = out, in = in](infer::Precision precision) {
        const infer::PackedMatrix matrix(weight.const_data_ptr<float>(), out, in, precision);
        const auto stride = matrix.padded_in();
        const Tensor padded = torch::constant_pad_nd(x, {0, stride - in}).contiguous();
        const Tensor y = torch::zeros({rows, out});
        matrix.multiply(padded.const_data_ptr<float>(), rows, stride, 0, matrix.panels(),
            y.data_ptr<float>(), out);
        return y;
      };
      const Tensor exact = torch::mm(x, weight.t());
      DOCTEST_CHECK(difference(packed(infer::Precision::float32), exact) < 1e-4);
      const Tensor halves = torch::mm(x, weight.to(torch::kBFloat16).to(torch::kFloat32).t());
      DOCTEST_CHECK(difference(packed(infer::Precision::bfloat16), halves) < 1e-4);
      const Tensor scale = weight.abs().amax(1, true) / 127;
      const Tensor bytes = torch::mm(x, ((weight / scale).round() * scale).t());
      DOCTEST_CHECK(difference(packed(infer::Precision::int8), bytes) < 1e-3);
    }
  }
}

DOCTEST_TEST_CASE("each row of a packed product has its bits in any number of rows") {
  for (const auto& [out, in] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {4, 16}, {7, 33}, {50, 64}, {9, 577}, {5, 4111}}) {
    const Tensor weight = torch::randn({out, in}), unpacked = torch::empty({out, in});
    for (const auto precision :
        {infer::Precision::float32, infer::Precision::bfloat16, infer::Precision::int8}) {
      const infer::PackedMatrix matrix(weight.const_data_ptr<float>(), out, in, precision);
      for (std::int64_t o = 0; o < out; ++o) matrix.row(o, unpacked[o].data_ptr<float>());
      const auto stride = matrix.padded_in();
      const Tensor x = torch::constant_pad_nd(torch::randn({200, in}), {0, stride - in + 3});
      const auto product = [&, out = out](std::int64_t first, std::int64_t n) {
        const Tensor y = torch::full({n, out + 2}, 7.0f);
        matrix.multiply(x[first].const_data_ptr<float>(), n, stride + 3, 0, matrix.panels(),
            y.data_ptr<float>(), out + 2);
        DOCTEST_CHECK((y.narrow(1, out, 2) == 7).all().item<bool>());
        return y.narrow(1, 0, out);
      };
      const Tensor all = product(0, 200), read = x.narrow(1, 0, in).to(torch::kFloat64),
                   factors = unpacked.to(torch::kFloat64).t(),
                   bound = torch::mm(read.abs(), factors.abs()) * 1e-6;
      DOCTEST_CHECK(((all - torch::mm(read, factors)).abs() <= bound).all().item<bool>());
      for (std::int64_t n = 1; n <= 20; ++n)
        DOCTEST_CHECK(torch::equal(product(n, n), all.narrow(0, n, n)));
      DOCTEST_CHECK(torch::equal(product(3, 100), all.narrow(0, 3, 100)));
    }
  }
}

DOCTEST_TEST_CASE("a product of bfloat16 pairs is the plain one of rounded inputs") {
  for (const auto& [out, in] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {4, 16}, {7, 33}, {50, 64}, {9, 100}}) {
    const std::int64_t rows = 13;
    const Tensor weight = torch::randn({out, in}), x = torch::randn({rows, in});
    for (const auto precision : {infer::Precision::bfloat16, infer::Precision::int8}) {
      const infer::PackedMatrix whole(weight.const_data_ptr<float>(), out, in, precision);
      infer::PackedMatrix matrix(out, in, precision);  // the same matrix, packed in parts
      for (std::int64_t first = 0; first < out; first += 3)
        matrix.set_rows(first, std::min<std::int64_t>(3, out - first),
            weight.const_data_ptr<float>() + first * in);
      const auto stride = matrix.padded_in();
      const Tensor padded = torch::constant_pad_nd(x, {0, stride - in}).contiguous();
      const auto product = [&](const infer::PackedMatrix& of, std::int64_t n) {
        const Tensor y = torch::zeros({n, of.out()});
        of.multiply_halves(padded.const_data_ptr<float>(), n, stride, 0, of.panels(),
            y.data_ptr<float>(), of.out());
        return y;
      };
      const Tensor unpacked = torch::empty({out, in}), all = product(matrix, rows);
      for (std::int64_t o = 0; o < out; ++o) matrix.row(o, unpacked[o].data_ptr<float>());
      const bool rounds = infer::has_half_products();
      const Tensor read = rounds ? x.to(torch::kBFloat16).to(torch::kFloat32) : x;
      DOCTEST_CHECK(difference(all, torch::mm(read, unpacked.t())) < 1e-3);
      DOCTEST_CHECK(difference(unpacked, weight) < 0.05);
      DOCTEST_CHECK(torch::equal(all, product(whole, rows)));
      for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 12})
        DOCTEST_CHECK(torch::equal(product(matrix, n), all.narrow(0, 0, n)));
      const auto last = std::min<std::int64_t>(4, out - 1);
      DOCTEST_CHECK(torch::equal(
          product(matrix.rows(last, out - last), rows), all.narrow(1, last, out - last)));
    }
  }
}

DOCTEST_TEST_CASE("a weight that is missing is an error, not a guess") {
  for (const char* arch : {"transformer", "encoder-decoder"}) {
    const auto parts = nn::arch_facts(arch).reads_source
                           ? std::vector<std::string>{"mlp.c_fc", "cross.c_q"}
                           : std::vector<std::string>{"attn.c_attn", "mlp.c_proj"};
    for (const auto& part : parts) {
      nn::Model model = engine_model([&](nn::ModelOptions& o) { o.arch = arch; }, 37);
      for (const auto& item : model.architecture->named_modules())
        if (item.key() == "h.1." + part)
          dynamic_cast<nn::Linear&>(*item.value()).weight = torch::Tensor();
      DOCTEST_CAPTURE(part);
      DOCTEST_CHECK_THROWS_WITH_AS(infer::TransformerEngine(model, infer::Precision::float32),
          doctest::Contains("expected"), core::Error);
    }
  }
}
